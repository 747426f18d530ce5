//! System calls for processes, memory, signals and time. A command has full control of its own
//! processes and none of others.

use super::{
    ArgumentTest, SandboxKind, SyscallGroup, SyscallList, allow, calls, deny, deny_as_absent,
    deny_if,
};

pub(super) fn groups(sandbox: SandboxKind) -> Vec<SyscallGroup> {
    let mut all = own_process();
    all.extend(legacy());
    all.extend(other_processes(sandbox));
    all
}

fn own_process() -> Vec<SyscallGroup> {
    vec![
        allow(
            calls!(__NR_brk __NR_mmap __NR_munmap __NR_mprotect __NR_mremap __NR_remap_file_pages
                __NR_madvise __NR_msync __NR_mincore
                __NR_mlock __NR_mlock2 __NR_mlockall __NR_munlock __NR_munlockall __NR_mseal
                __NR_mbind __NR_get_mempolicy
                __NR_set_mempolicy __NR_set_mempolicy_home_node __NR_pkey_mprotect __NR_pkey_alloc
                __NR_pkey_free __NR_memfd_create
                __NR_membarrier __NR_map_shadow_stack),
            "its own memory, within the limits of the process",
        ),
        allow(
            calls!(__NR_exit __NR_exit_group __NR_wait4 __NR_waitid __NR_getpid __NR_getppid
                __NR_gettid __NR_getpgid __NR_setpgid
                __NR_getsid __NR_setsid __NR_getuid __NR_geteuid __NR_getgid __NR_getegid
                __NR_getresuid __NR_getresgid __NR_getgroups
                __NR_getrusage __NR_times __NR_uname __NR_sysinfo __NR_getcpu __NR_getrandom
                __NR_set_tid_address __NR_set_robust_list
                __NR_rseq __NR_futex __NR_futex_waitv __NR_futex_wake __NR_futex_wait
                __NR_futex_requeue __NR_sched_yield
                __NR_getrlimit __NR_setrlimit __NR_capget __NR_restart_syscall),
            "they affect their own process, or read information that every process can read",
        ),
        allow(
            calls!(__NR_setuid __NR_setgid __NR_setreuid __NR_setregid __NR_setresuid
                __NR_setresgid __NR_setfsuid __NR_setfsgid
                __NR_setgroups __NR_capset),
            "without capabilities, they give access to no other user and to no additional rights",
        ),
        allow(
            calls!(__NR_seccomp __NR_landlock_create_ruleset __NR_landlock_add_rule
                __NR_landlock_restrict_self),
            "they can only drop rights",
        ),
        allow(
            calls!(__NR_clock_gettime __NR_clock_getres __NR_clock_nanosleep __NR_nanosleep
                __NR_gettimeofday __NR_getitimer
                __NR_setitimer __NR_timer_create __NR_timer_settime __NR_timer_gettime
                __NR_timer_getoverrun __NR_timer_delete
                __NR_timerfd_create __NR_timerfd_settime __NR_timerfd_gettime),
            "reading the time, and timers of its own",
        ),
        allow(
            calls!(__NR_epoll_create1 __NR_epoll_ctl __NR_epoll_pwait __NR_epoll_pwait2
                __NR_eventfd2 __NR_pipe2 __NR_ppoll
                __NR_pselect6 __NR_signalfd4),
            "waiting for descriptors of its own",
        ),
        allow(
            calls!(__NR_rt_sigaction __NR_rt_sigprocmask __NR_rt_sigpending __NR_rt_sigsuspend
                __NR_rt_sigtimedwait __NR_rt_sigreturn
                __NR_sigaltstack),
            "handling signals",
        ),
        #[cfg(target_arch = "riscv64")]
        allow(calls!(__NR_riscv_flush_icache __NR_riscv_hwprobe), "its own processor"),
    ]
}

fn legacy() -> Vec<SyscallGroup> {
    vec![
        #[cfg(target_arch = "x86_64")]
        allow(
            calls!(__NR_fork __NR_vfork __NR_getpgrp __NR_time __NR_alarm __NR_pause
                __NR_arch_prctl __NR_uretprobe),
            "they affect only the calling process; `uretprobe` works only in code of the kernel",
        ),
        #[cfg(target_arch = "x86_64")]
        allow(
            calls!(__NR_epoll_create __NR_epoll_wait __NR_eventfd __NR_pipe __NR_poll __NR_select
                __NR_signalfd),
            "waiting for descriptors of its own",
        ),
    ]
}

fn other_processes(sandbox: SandboxKind) -> Vec<SyscallGroup> {
    const NAMESPACES: [i32; 7] = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    const SCHEDULING: SyscallList = calls!(__NR_sched_setscheduler __NR_sched_setparam
        __NR_sched_setattr __NR_sched_setaffinity);
    const QUEUES: SyscallList = calls!(__NR_mq_open __NR_mq_unlink __NR_mq_timedsend
        __NR_mq_timedreceive __NR_mq_notify __NR_mq_getsetattr);
    const SYSTEM_V: SyscallList = calls!(__NR_shmget __NR_shmat __NR_shmctl __NR_semget __NR_semop
        __NR_semtimedop __NR_semctl __NR_msgget
        __NR_msgsnd __NR_msgrcv __NR_msgctl);
    let asks = |flag: i32| vec![ArgumentTest::HasBits(0, u64::from(flag.cast_unsigned()))];
    let not_itself = |argument| [vec![ArgumentTest::NotEqual(argument, 0)]];
    let mut all = vec![
        deny_if(
            calls!(__NR_clone),
            NAMESPACES.map(asks),
            "in a user namespace, the process is root, which exposes large parts of the kernel",
        ),
        deny_as_absent(
            calls!(__NR_clone3),
            "its flags are in memory, which the filter cannot read; programs fall back to `clone`",
        ),
        deny(calls!(__NR_unshare __NR_setns), "see `clone`"),
        allow(
            calls!(__NR_kill __NR_tkill __NR_tgkill __NR_rt_sigqueueinfo __NR_rt_tgsigqueueinfo
                __NR_pidfd_open
                __NR_pidfd_send_signal),
            "the process namespace, or Landlock on Linux 6.12 and newer, limits signals to the \
                command",
        ),
        allow(
            calls!(__NR_ptrace __NR_process_vm_readv __NR_get_robust_list),
            "Landlock allows them only for processes of the same command, which debuggers need",
        ),
        deny(calls!(__NR_process_vm_writev), "it writes into other processes"),
        deny(
            calls!(__NR_process_madvise __NR_process_mrelease),
            "they discard memory of other processes",
        ),
        deny(
            calls!(__NR_kcmp __NR_pidfd_getfd),
            "they read and copy descriptors of other processes",
        ),
        allow(
            calls!(__NR_sched_getscheduler __NR_sched_getparam __NR_sched_getattr
                __NR_sched_getaffinity __NR_sched_rr_get_interval
                __NR_sched_get_priority_max __NR_sched_get_priority_min __NR_getpriority
                __NR_ioprio_get),
            "they return information that is also in `/proc`",
        ),
        deny_if(calls!(__NR_prlimit64), not_itself(0), "it sets the limits of other processes"),
        deny_if(
            calls!(__NR_migrate_pages __NR_move_pages),
            not_itself(0),
            "they move the memory of other processes",
        ),
        deny_if(
            calls!(__NR_setpriority),
            [
                vec![ArgumentTest::NotEqual(0, linux_raw_sys::general::PRIO_PROCESS.into())],
                vec![ArgumentTest::NotEqual(1, 0)],
            ],
            "it slows other processes",
        ),
        deny_if(
            calls!(__NR_ioprio_set),
            [
                vec![ArgumentTest::NotEqual(0, IOPRIO_WHO_PROCESS)],
                vec![ArgumentTest::NotEqual(1, 0)],
            ],
            "it slows other processes",
        ),
    ];
    if sandbox.shares_host {
        all.extend([
            deny_if(
                SCHEDULING,
                not_itself(0),
                "they slow other processes; a thread sets its own as number 0",
            ),
            deny_as_absent(
                QUEUES,
                "message queues belong to all processes of the machine, and \
                can be emptied and removed by name",
            ),
            deny(
                SYSTEM_V,
                "memory and messages of System V are shared with all processes of the user",
            ),
            allow(calls!(__NR_shmdt), "it only detaches memory, which `shmat` cannot attach here"),
        ]);
    } else {
        all.extend([
            allow(SCHEDULING, "other processes have no number in this namespace"),
            allow(QUEUES, "the namespace has message queues of its own"),
            allow(SYSTEM_V, "the namespace has memory and messages of its own"),
            allow(calls!(__NR_shmdt), "the namespace has memory and messages of its own"),
        ]);
    }
    all
}

/// A constant that is missing in `linux-raw-sys`.
const IOPRIO_WHO_PROCESS: u64 = 1;
