//! The operations that change something: judged, and written aside.

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::Files;
use super::guard::{Doing, Guard};
use super::problem::Problem;
use super::view::{Found, Node, View};
use crate::policy::{Code, Denial};
use crate::sandbox::below::{self, Kind};
use crate::sandbox::stage::{Stage, StageError, Staged};

/// Files and directories that are moved with one directory. Each of them is written aside.
const MOST_MOVED: usize = 500;

type Done = Result<(), Problem>;

impl Files {
    pub(super) fn create_directory(&mut self, from: &str, path: &str) -> Done {
        let view = self.writable()?;
        let found = view.find(from, path, false)?;
        if found.node.is_some() {
            return Err(ErrorCode::Exist.into());
        }
        view.judge(&found.place, Doing::MakeDirectory)?;
        view.parent_is_writable(&found.place)?;
        let (stage, root) = view.aside()?;
        stage.make_directory(root, &found.place)?;
        self.touched.written(&found.place);
        Ok(())
    }

    pub(super) fn unlink(&mut self, from: &str, path: &str) -> Done {
        let view = self.writable()?;
        let Found { place, node, as_directory } = view.find(from, path, false)?;
        match node.as_ref().map(Node::kind) {
            None => return Err(ErrorCode::NoEntry.into()),
            Some(Kind::Directory) => return Err(ErrorCode::IsDirectory.into()),
            Some(_) if as_directory => return Err(ErrorCode::NotDirectory.into()),
            Some(Kind::Special) => return Err(special(&place)),
            Some(Kind::File | Kind::Link) => {}
        }
        view.judge(&place, Doing::Changing)?;
        view.parent_is_writable(&place)?;
        let (stage, root) = view.aside()?;
        stage.remove(root, &place)?;
        self.touched.written(&place);
        Ok(())
    }

    pub(super) fn remove_directory(&mut self, from: &str, path: &str) -> Done {
        let view = self.writable()?;
        let Found { place, node, .. } = view.find(from, path, false)?;
        match node.as_ref().map(Node::kind) {
            None => return Err(ErrorCode::NoEntry.into()),
            Some(Kind::File | Kind::Link | Kind::Special) => return Err(ErrorCode::NotDirectory.into()),
            Some(Kind::Directory) => {}
        }
        view.is_not_root(&place)?;
        view.judge(&place, Doing::Changing)?;
        view.parent_is_writable(&place)?;
        if !view.list(&place)?.is_empty() {
            return Err(ErrorCode::NotEmpty.into());
        }
        let (stage, root) = view.aside()?;
        stage.remove(root, &place)?;
        self.touched.written(&place);
        Ok(())
    }

    pub(super) fn symlink(&mut self, from: &str, target: &str, path: &str) -> Done {
        let view = self.writable()?;
        let found = view.find(from, path, false)?;
        if found.node.is_some() {
            return Err(ErrorCode::Exist.into());
        }
        if found.as_directory || target.is_empty() || target.contains('\0') || target.len() > 4096 {
            return Err(ErrorCode::Invalid.into());
        }
        if leads_out(below::split(&found.place).0, target) || turns_back(target) {
            return Err(Problem::leads_out(target));
        }
        view.workspace.guard().linking(&found.place)?;
        view.parent_is_writable(&found.place)?;
        let (stage, root) = view.aside()?;
        stage.link(root, &found.place, target.to_owned())?;
        self.touched.written(&found.place);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, old: &str, to: &str, new: &str) -> Done {
        let view = self.writable()?;
        let old = view.find(from, old, false)?;
        let new = view.find(to, new, false)?;
        let Some(moved) = &old.node else { return Err(ErrorCode::NoEntry.into()) };
        view.is_not_root(&old.place)?;
        view.is_not_root(&new.place)?;
        if old.place == new.place {
            return Ok(());
        }
        match (moved.kind(), new.node.as_ref().map(Node::kind)) {
            (Kind::Special, _) => return Err(special(&old.place)),
            (_, Some(Kind::Special)) => return Err(special(&new.place)),
            (Kind::Directory, Some(Kind::File | Kind::Link)) => return Err(ErrorCode::NotDirectory.into()),
            (Kind::File | Kind::Link, Some(Kind::Directory)) => return Err(ErrorCode::IsDirectory.into()),
            (Kind::File | Kind::Link, None) if new.as_directory => return Err(ErrorCode::NotDirectory.into()),
            (Kind::Directory, _) if format!("{}/", new.place).starts_with(&format!("{}/", old.place)) => {
                return Err(ErrorCode::Invalid.into());
            }
            (Kind::Directory, Some(Kind::Directory)) if !view.list(&new.place)?.is_empty() => return Err(ErrorCode::NotEmpty.into()),
            (Kind::Directory | Kind::File | Kind::Link, None | Some(_)) => {}
        }
        view.parent_is_writable(&old.place)?;
        view.parent_is_writable(&new.place)?;
        // All of it is judged before any of it moves.
        let moves = view.moves(&old.place, &new.place, moved.kind())?;
        for one in &moves {
            self.touched.written(&one.old);
            self.touched.written(&one.new);
        }
        let view = self.writable()?;
        let (stage, root) = view.aside()?;
        stage.has_room_for(root, moves.iter().map(|one| (one.old.as_str(), one.new.as_str(), one.kind)))?;
        for Move { old, new, kind } in &moves {
            if *kind == Kind::Directory { stage.move_directory(root, old, new)? } else { stage.rename(root, old, new)? }
        }
        for Move { old, .. } in moves.iter().rev().filter(|one| one.kind == Kind::Directory) {
            stage.remove(root, old)?;
        }
        Ok(())
    }

    pub(super) fn writable(&mut self) -> Result<&mut View, Problem> {
        match &mut self.view {
            Some(view) if view.stage.is_some() => Ok(view),
            Some(_) | None => Err(read_only()),
        }
    }
}

/// One thing that moves.
struct Move {
    old: String,
    new: String,
    kind: Kind,
}

impl View {
    /// The stage, and what it is laid over.
    pub(super) fn aside(&mut self) -> Result<(&mut Stage, &cap_std::fs::Dir), Problem> {
        let Self { workspace, stage } = self;
        Ok((stage.as_mut().ok_or_else(read_only)?, workspace.dir()))
    }

    pub(super) fn judge(&self, place: &str, doing: Doing) -> Done {
        Ok(self.workspace.guard().changing(place, doing)?)
    }

    /// Whether names can be made and removed beside a place, which the system would say in the end.
    pub(super) fn parent_is_writable(&self, place: &str) -> Done {
        let parent = below::split(place).0;
        match self.node(parent)? {
            Some(Node::There(..)) => Ok(below::may_write(self.root(), parent)?),
            Some(Node::Aside(..) | Node::Link(_)) | None => Ok(()),
        }
    }

    fn is_not_root(&self, place: &str) -> Done {
        if place.is_empty() { Err(ErrorCode::Busy.into()) } else { Ok(()) }
    }

    /// Everything that moves with a place, directories before what is in them; each is judged under both names. What may
    /// not be read does not move either, for it could be read under its new name.
    fn moves(&self, old: &str, new: &str, kind: Kind) -> Result<Vec<Move>, Problem> {
        let mut moves = Vec::new();
        let mut ahead = vec![(String::new(), kind)];
        while let Some((rest, kind)) = ahead.pop() {
            let (old, new) = (format!("{old}{rest}"), format!("{new}{rest}"));
            if moves.len() == MOST_MOVED {
                let reason = format!("'{old}' is one of more than {MOST_MOVED} files and directories that would move at once.");
                return Err(Problem::Denied(ErrorCode::Quota, Denial::new(Code::TooMuch, reason, "Move them in several calls.")));
            }
            self.judge(&old, Doing::Changing)?;
            match kind {
                Kind::Special => return Err(special(&old)),
                Kind::Directory => {
                    self.judge(&new, Doing::MakeDirectory)?;
                    for entry in self.list(&old)? {
                        let (name, kind) = entry?;
                        ahead.push((format!("{rest}/{name}"), kind));
                    }
                }
                Kind::File | Kind::Link => {
                    self.judge(&new, Doing::Changing)?;
                    self.workspace.guard().reading(&old)?;
                    if let Some(Node::Link(target)) = self.node(&old)? {
                        self.workspace.guard().linking(&new)?;
                        if leads_out(below::split(&new).0, &target) {
                            return Err(Problem::link_leads_out(&new));
                        }
                    }
                    if let Some(Node::There(Kind::File, metadata)) = self.node(&old)? {
                        Guard::linked(&old, &metadata)?;
                    }
                }
            }
            moves.push(Move { old, new, kind });
        }
        Ok(moves)
    }
}

/// Whether a link in a directory leads out of the workspace by its own words.
fn leads_out(directory: &str, target: &str) -> bool {
    let mut depth = directory.split('/').filter(|part| !part.is_empty()).count();
    if target.starts_with('/') {
        return true;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(up) => depth = up,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

/// Whether a link goes up after it has gone down: where that leads depends on what it goes through, and on what that is later.
fn turns_back(target: &str) -> bool {
    let parts = target.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.skip_while(|part| *part == "..").any(|part| part == "..")
}

impl View {
    /// What the call has written, compared with what is there; `None` if that comes to nothing.
    pub(in crate::sandbox) fn finish(self, is_over: &dyn Fn() -> bool) -> Result<Option<Staged>, StageError> {
        if let Some(place) = self.link_that_leads_out() {
            return Err(StageError::LeadsOut(place.to_owned()));
        }
        let Self { workspace, stage } = self;
        let Some(stage) = stage.filter(|stage| !stage.is_empty()) else { return Ok(None) };
        Ok(Some(stage.finish(&workspace, is_over)?).filter(|staged| !staged.changes().is_empty()))
    }

    /// A link that was written aside and leads out of the workspace, by its own words or through other links.
    fn link_that_leads_out(&self) -> Option<&str> {
        let links = self.stage.iter().flat_map(Stage::links);
        let leads_out = |place: &str, target: &str| {
            leads_out(below::split(place).0, target)
                || matches!(self.find("", place, true), Err(Problem::Denied(_, denial)) if denial.code == Code::OutsideWorkspace)
        };
        links.filter(|(place, target)| leads_out(place, target)).map(|(place, _)| place).next()
    }
}

pub(super) fn special(place: &str) -> Problem {
    let reason = format!("'{place}' is a FIFO, a socket or a device; tools work on files and directories.");
    Problem::Denied(ErrorCode::NotPermitted, Denial::fixed(Code::SpecialFile, reason))
}

pub(super) fn read_only() -> Problem {
    let denial = crate::sandbox::state::not_granted("change files", "write-files");
    Problem::Denied(ErrorCode::NotPermitted, denial)
}
