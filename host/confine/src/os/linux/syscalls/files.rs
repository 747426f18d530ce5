//! System calls for files.
//!
//! Most act on files that are open already, or use a path that Landlock checks. Landlock does not
//! check file attributes, so these need rules of their own.

use super::{
    ArgumentTest, SandboxKind, SyscallGroup, SyscallList, allow, calls, deny, deny_as_absent,
    deny_as_unsupported, deny_if,
};

/// The mode bits for files that run as their owner or group.
const SET_ID_BITS: [u64; 2] = [0o4000, 0o2000];
/// The flags with which opening a file creates it, so that the mode counts.
const CREATE_FLAGS: [u32; 2] =
    [linux_raw_sys::general::O_CREAT, linux_raw_sys::general::__O_TMPFILE];

pub(super) fn groups(sandbox: SandboxKind) -> Vec<SyscallGroup> {
    let mut all = vec![
        allow(
            calls!(__NR_read __NR_write __NR_readv __NR_writev __NR_pread64 __NR_pwrite64
                __NR_preadv __NR_pwritev __NR_preadv2
                __NR_pwritev2 __NR_lseek __NR_ftruncate __NR_fallocate __NR_fadvise64
                __NR_readahead __NR_sendfile
                __NR_copy_file_range __NR_splice __NR_tee __NR_vmsplice __NR_fsync __NR_fdatasync
                __NR_sync_file_range __NR_flock
                __NR_close __NR_close_range __NR_dup __NR_dup3 __NR_fstat __NR_fstatfs
                __NR_getdents64 __NR_fgetxattr
                __NR_flistxattr __NR_cachestat __NR_io_setup __NR_io_submit __NR_io_getevents
                __NR_io_pgetevents __NR_io_cancel
                __NR_io_destroy),
            "they use an open descriptor; Landlock checked the access when the file was opened, \
                and inherited descriptors are closed",
        ),
        allow(
            calls!(__NR_execve __NR_execveat __NR_truncate __NR_mkdirat __NR_unlinkat
                __NR_symlinkat __NR_linkat __NR_renameat2),
            "Landlock decides on the paths",
        ),
        allow(
            calls!(__NR_newfstatat __NR_statx __NR_statfs __NR_faccessat __NR_faccessat2
                __NR_readlinkat __NR_chdir __NR_fchdir
                __NR_getcwd __NR_umask),
            "they show the existence, size, owner and times of a path, and the target of a link; \
                Landlock does not cover metadata",
        ),
        allow(
            calls!(__NR_utimensat __NR_fchown __NR_fchownat),
            "Landlock does not cover times and owners; archivers and package managers need to set \
                them",
        ),
        allow(calls!(__NR_sync __NR_syncfs), "they only flush data that will be written anyway"),
        deny_as_absent(
            calls!(__NR_openat2),
            "its flags are in memory, which the filter cannot read, and could create a set-user-ID \
                file; programs fall back to `openat`",
        ),
        deny(
            calls!(__NR_mount __NR_umount2 __NR_pivot_root __NR_chroot __NR_move_mount
                __NR_open_tree __NR_open_tree_attr __NR_fsopen
                __NR_fsconfig __NR_fsmount __NR_fspick __NR_mount_setattr),
            "the mounts are a part of the sandbox",
        ),
        deny_as_absent(
            calls!(__NR_statmount __NR_listmount),
            "they list mounts of other namespaces; few programs use them",
        ),
        deny(
            calls!(__NR_open_by_handle_at __NR_name_to_handle_at),
            "they refer to files by number and bypass path checks",
        ),
        deny_as_absent(
            calls!(__NR_file_getattr __NR_file_setattr),
            "they change attributes of files outside the workspace, such as the quota project",
        ),
        deny(
            calls!(__NR_fanotify_init __NR_fanotify_mark),
            "they watch files of other users, and with privileges control access to them",
        ),
    ];
    all.extend(set_id());
    all.extend(attributes(sandbox));
    all.extend(legacy());
    all
}

fn set_id() -> Vec<SyscallGroup> {
    const WHY: &str = "a set-user-ID or set-group-ID file remains after the command and gives its \
        rights to whoever runs it; Landlock checks the other accesses, except for permissions of \
        existing files";
    let bits = |argument| SET_ID_BITS.map(|bit| vec![ArgumentTest::HasBits(argument, bit)]);
    let creating = |flags: u8, mode: u8| -> Vec<Vec<ArgumentTest>> {
        let pairs = CREATE_FLAGS.iter().flat_map(|flag| SET_ID_BITS.map(|bit| (*flag, bit)));
        pairs
            .map(|(flag, bit)| {
                vec![
                    ArgumentTest::HasBits(flags, u64::from(flag)),
                    ArgumentTest::HasBits(mode, bit),
                ]
            })
            .collect()
    };
    vec![
        deny_if(calls!(__NR_fchmod), bits(1), WHY),
        deny_if(calls!(__NR_fchmodat __NR_fchmodat2 __NR_mknodat), bits(2), WHY),
        deny_if(calls!(__NR_openat), creating(2, 3), WHY),
        #[cfg(target_arch = "x86_64")]
        deny_if(calls!(__NR_chmod __NR_mknod __NR_creat), bits(1), WHY),
        #[cfg(target_arch = "x86_64")]
        deny_if(calls!(__NR_open), creating(1, 2), WHY),
    ]
}

/// Returns the calls that change attributes of a path. Without a file system of its own, a command
/// could change all files of the user.
fn attributes(sandbox: SandboxKind) -> Vec<SyscallGroup> {
    const EXTENDED: SyscallList = calls!(__NR_setxattr __NR_lsetxattr __NR_fsetxattr
        __NR_removexattr __NR_lremovexattr __NR_fremovexattr
        __NR_getxattr __NR_lgetxattr __NR_listxattr __NR_llistxattr);
    const EXTENDED_AT: SyscallList =
        calls!(__NR_setxattrat __NR_getxattrat __NR_listxattrat __NR_removexattrat);
    const WATCHES: SyscallList =
        calls!(__NR_inotify_init1 __NR_inotify_add_watch __NR_inotify_rm_watch);
    #[cfg(target_arch = "x86_64")]
    const OLD_WATCHES: SyscallList = calls!(__NR_inotify_init);
    let watches = if sandbox.shares_host { deny_as_absent } else { allow };
    let why = if sandbox.shares_host {
        "a watch reveals names and use of files outside the workspace; programs fall back to \
            polling"
    } else {
        "only files that are mounted in the sandbox can be watched"
    };
    let mut all = vec![
        watches(WATCHES, why),
        #[cfg(target_arch = "x86_64")]
        watches(OLD_WATCHES, why),
    ];
    if sandbox.shares_host {
        all.push(deny_as_unsupported(
            EXTENDED,
            "Landlock does not cover extended attributes of files outside the workspace, which \
                include access lists",
        ));
        all.push(deny_as_absent(EXTENDED_AT, "see `setxattr`; programs fall back to it"));
    } else {
        all.push(allow(
            EXTENDED,
            "only files that are mounted in the sandbox have attributes \
            here, and most of them are read-only",
        ));
        all.push(allow(EXTENDED_AT, "see `setxattr`"));
    }
    all
}

/// Returns the calls that newer architectures never had.
fn legacy() -> Vec<SyscallGroup> {
    vec![
        #[cfg(not(target_arch = "riscv64"))]
        allow(calls!(__NR_renameat), "Landlock decides on the paths"),
        #[cfg(target_arch = "x86_64")]
        allow(
            calls!(__NR_mkdir __NR_rmdir __NR_unlink __NR_symlink __NR_link __NR_rename),
            "Landlock decides on the paths",
        ),
        #[cfg(target_arch = "x86_64")]
        allow(calls!(__NR_stat __NR_lstat __NR_access __NR_readlink), "see `newfstatat`"),
        #[cfg(target_arch = "x86_64")]
        allow(
            calls!(__NR_chown __NR_lchown __NR_utime __NR_utimes __NR_futimesat),
            "see `utimensat`",
        ),
        #[cfg(target_arch = "x86_64")]
        allow(calls!(__NR_dup2 __NR_getdents), "they use an open descriptor"),
    ]
}
