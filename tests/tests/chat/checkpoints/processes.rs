//! What the processes of a command notice of a checkpoint, and what they do meanwhile.

use std::time::{Duration, Instant};

use cofferdam_tests::program::{find_processes, wait_until};
use serde_json::json;

use super::{JobChat, write};
use crate::new_home;

#[test]
fn open_files_and_mappings_are_written_on_after_a_checkpoint() {
    let home = new_home().with_file("old", "0".repeat(4096));
    write(
        &home,
        "script.py",
        "import mmap, os, time\n\
         old = open('old', 'r+b')\n\
         new = open('new', 'w+b')\n\
         new.truncate(4096)\n\
         log = open('log', 'ab', 0)\n\
         maps = [mmap.mmap(f.fileno(), 4096) for f in (old, new)]\n\
         for n in range(1, 5):\n\
         \x20   while str(n) not in os.listdir('steps'): time.sleep(0.02)\n\
         \x20   for m in maps: m[n:n + 1] = b'x'\n\
         \x20   log.write(b'%d\\n' % n)\n\
         \x20   print('did', n, flush=True)\n",
    );
    let call =
        json!({"command": "export PATH=/usr/bin:/bin; exec python3 script.py", "background": true});
    let mut chat = JobChat::start_line(home, call);
    for number in 1..=4 {
        chat.run_step(number);
        if number == 4 {
            chat.wait_for_end();
        } else {
            chat.commit();
        }
        for path in ["old", "new"] {
            let text = chat.text(path);
            assert_eq!(text.matches('x').count(), number, "{path}, step {number}");
            assert_eq!(text.len(), 4096);
        }
        assert_eq!(chat.text("log").lines().count(), number);
    }
    chat.leave();
}

#[test]
fn an_interactive_shell_with_jobs_of_its_own_notices_nothing() {
    let home = new_home();
    write(
        &home,
        "shell.sh",
        "set -m\n\
         sleep 3000 & \n\
         sleep 3001 & kill -STOP %2; sleep 0.2; jobs\n\
         until ls steps | grep -qx 1; do sleep 0.05; done\n\
         echo x > file\n\
         echo did 1\n\
         until ls steps | grep -qx 2; do sleep 0.05; done\n\
         jobs; ps -o stat= -p $(jobs -p | tail -n 1) | cut -c1 | sed 's/^/state /'; echo did 2\n\
         until ls steps | grep -qx 3; do sleep 0.05; done\n\
         kill -KILL %1 %2; exit 7\n",
    );
    let call = json!({
        "command": "bash --norc --noprofile -i shell.sh",
        "background": true,
        "terminal": true,
    });
    let mut chat = JobChat::start_line(home, call);
    chat.run_step(1);
    for _ in 0..3 {
        chat.commit();
    }
    assert_eq!(chat.text("file"), "x\n");
    write(&chat.home, "steps/2", "");
    chat.wait_for("did 2");
    let shown = chat.ask("/jobs 1");
    let after = shown.split("did 1").nth(1).expect("the first step");
    assert!(after.contains("[1]-  Running") || after.contains("[1]+  Running"), "{shown}");
    assert!(after.contains("Stopped") && after.contains("state T"), "{shown}");
    assert_eq!(after.matches("Stopped").count(), 1, "{shown}");
    write(&chat.home, "steps/3", "");
    let end = chat.wait_for_end();
    assert!(end.contains("exit code 7"), "{end}");
    chat.leave();
}

#[test]
fn processes_that_start_others_all_the_time_are_paused_too() {
    let script = "for n in 1 2 3; do (while :; do (echo $n >> log$n); /bin/true; done) & done\n\
        step 1; did 1; wait\n";
    let mut chat = JobChat::start(new_home(), script);
    chat.run_step(1);
    for _ in 0..3 {
        chat.commit();
        assert!(chat.home.has_file("log1") && chat.home.has_file("log3"));
        let size = || chat.home.workspace().join("log2").metadata().expect("it exists").len();
        assert!(size() > 0);
    }
    let before = chat.text("log1").len();
    std::thread::sleep(Duration::from_millis(200));
    chat.commit();
    assert!(chat.text("log1").len() > before, "they went on");
    chat.ask("/jobs stop 1");
    chat.leave();
}

#[test]
fn a_process_that_continues_itself_has_no_checkpoint() {
    let home = new_home();
    // Timers send SIGCONT to the process now and then.
    write(
        &home,
        "script.py",
        format!(
            "import os, signal\n\
             {TIMER}\
             os.mkdir('many')\n\
             for n in range(3000): open('many/%d' % n, 'w').write('x')\n\
             for n in range(30, 60, 3): start(n * 1000000)\n\
             print('did 1', flush=True)\n\
             n = 0\n\
             while True:\n\
             \x20   n += 1\n\
             \x20   os.makedirs('.git/hooks', exist_ok=True)\n\
             \x20   open('.git/hooks/post-commit', 'w').write(str(n))\n\
             \x20   open('file', 'w').write(str(n))\n"
        ),
    );
    let command = "export PATH=/usr/bin:/bin; exec python3 script.py";
    let mut chat = JobChat::start_line(home, json!({"command": command, "background": true}));
    chat.run_step(1);
    let shown = chat.ask("/jobs commit 1");
    assert!(shown.contains("cannot commit"), "{shown}");
    assert!(shown.contains("has run while all were paused"), "{shown}");
    for path in ["file", "many", ".git/hooks/post-commit"] {
        assert!(!chat.home.has_file(path), "{path}");
    }
    assert!(chat.ask("/jobs 1").contains("running"));
    let end = chat.ask("/jobs stop 1");
    assert!(end.contains("stopped on request"), "{end}");
    assert!(chat.home.has_file("file") && !chat.home.has_file(".git/hooks/post-commit"));
    chat.leave();
}

/// Defines `start(nanoseconds)`, after which the kernel sends SIGCONT at this interval. A signal
/// that has no handler would come only once.
const TIMER: &str = "\
import ctypes
signal.signal(signal.SIGCONT, lambda *_: None)
libc = ctypes.CDLL(None)
class Event(ctypes.Structure):
    _fields_ = [('value', ctypes.c_void_p), ('signo', ctypes.c_int), ('notify', ctypes.c_int),
                ('pad', ctypes.c_char * 48)]
def start(interval):
    timer = ctypes.c_void_p()
    event = Event(None, signal.SIGCONT, 0)
    assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
    every = (ctypes.c_long * 4)(0, interval, 0, interval)
    assert libc.timer_settime(timer, 0, every, None) == 0
";

#[test]
fn a_process_that_waits_in_the_kernel_fails_the_checkpoint_and_goes_on() {
    let home = new_home();
    // A parent waits uninterruptibly for its child after `vfork`, until the child executes.
    write(
        &home,
        "script.py",
        "import ctypes, os, time\n\
         open('file', 'w').write('x')\n\
         libc = ctypes.CDLL(None)\n\
         pid = os.fork()\n\
         if pid == 0:\n\
         \x20   libc.syscall.restype = ctypes.c_long\n\
         \x20   NR = {'x86_64': 56, 'aarch64': 220, 'riscv64': 220}[os.uname().machine]\n\
         \x20   child = libc.syscall(NR, 0x4000 | 17, 0, 0, 0, 0)\n\
         \x20   if child == 0:\n\
         \x20       time.sleep(9)\n\
         \x20       os._exit(0)\n\
         \x20   os._exit(0)\n\
         time.sleep(0.3)\n\
         print('did 1', flush=True)\n\
         os.waitpid(pid, 0)\n\
         print('did 2', flush=True)\n\
         time.sleep(1000)\n",
    );
    let call =
        json!({"command": "export PATH=/usr/bin:/bin; exec python3 script.py", "background": true});
    let mut chat = JobChat::start_line(home, call);
    chat.run_step(1);
    let begun = Instant::now();
    let shown = chat.ask("/jobs commit 1");
    assert!(shown.contains("cannot commit") && shown.contains("waits for the system"), "{shown}");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert!(!chat.home.has_file("file"));
    // Everything has continued, and the next one works.
    chat.wait_for("did 2");
    chat.commit();
    assert_eq!(chat.text("file"), "x");
    chat.ask("/jobs stop 1");
    chat.leave();
}

#[test]
fn the_end_of_the_chat_during_a_checkpoint_leaves_no_stopped_process() {
    let home = new_home();
    // Enough work to be interrupted in it.
    let script = "mkdir many; i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo $i > many/$i; done\n\
        sleep 4713 & step 1; did 1; wait\n";
    let mut chat = JobChat::start(home, script);
    chat.run_step(1);
    chat.terminal.type_keys("/jobs commit 1\n");
    std::thread::sleep(Duration::from_millis(40));
    drop(chat.terminal);
    wait_until("no process is left", || find_processes("sleep 4713").is_empty());
    // Old or new, and nothing in between.
    let many = chat.home.workspace().join("many");
    assert!(!many.exists() || many.read_dir().expect("it is listed").count() == 4000);
}

#[test]
fn a_command_that_ends_during_a_checkpoint_has_its_changes_committed() {
    for delay in [0, 5, 20, 60, 150] {
        let script = "mkdir many; i=0\n\
            while [ $i -lt 300 ]; do i=$((i+1)); echo $i > many/$i; done\n\
            step 1; did 1; step 2; echo last > many/last; exit 4\n";
        let mut chat = JobChat::start(new_home(), script);
        chat.run_step(1);
        write(&chat.home, "steps/2", "");
        std::thread::sleep(Duration::from_millis(delay));
        // It may come too late.
        chat.ask("/jobs commit 1");
        let end = chat.wait_for_end();
        assert!(end.contains("exit code 4") && !end.contains("discarded"), "{end}");
        assert_eq!(chat.text("many/last"), "last\n");
        let many = chat.home.workspace().join("many").read_dir().expect("it is listed").count();
        assert_eq!(many, 301);
        chat.leave();
    }
}
