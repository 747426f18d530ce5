//! The process group of a command, which is killed together with the command.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;

/// A process group that is killed on drop, unless it was killed before.
pub(super) struct ProcessGroup {
    leader: Option<Pid>,
}

impl ProcessGroup {
    pub(super) fn from_leader(pid: Option<u32>) -> Self {
        Self { leader: pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw) }
    }

    /// Sends TERM to the group, then KILL to remaining processes after `grace`, and reaps the
    /// leader. Returns quickly if no process is left.
    pub(super) async fn terminate(&mut self, child: &mut Child, grace: Duration) {
        let Some(leader) = self.leader else { return };
        if kill_process_group(leader, Signal::TERM).is_err() {
            self.leader = None;
            return;
        }
        let _ = tokio::time::timeout(grace, async {
            // A leader that was not reaped still counts as a member.
            let _ = child.wait().await;
            while test_kill_process_group(leader).is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        self.kill();
        let _ = child.wait().await;
    }

    /// Kills the group at most once, because the kernel may reuse the process group ID.
    fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            // An error means that no process is left, which is the goal.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
