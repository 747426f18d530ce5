//! System calls with many subcommands, and the names of the allowed ones. Other subcommands fail as
//! on a kernel that does not have them.

use linux_raw_sys::{general, ioctl, prctl};

use super::{ArgumentTest, SyscallGroup, calls, deny_if, deny_if_with_errno, none_of};

macro_rules! values {
    ($module:ident: $($name:ident)*) => { &[$($module::$name),*] };
}

/// Terminal operations. `TIOCSTI` and `TIOCLINUX` are missing because they could type into the
/// user's terminal.
const TERMINAL: &[u32] = values!(ioctl: TCGETS TCSETS TCSETSW TCSETSF TCGETS2 TCSETS2 TCSETSW2
    TCSETSF2 TCSBRK TCSBRKP TCXONC TCFLSH
    TIOCGWINSZ TIOCSWINSZ TIOCGPGRP TIOCSPGRP TIOCGSID TIOCSCTTY TIOCNOTTY TIOCOUTQ TIOCGPTN
    TIOCSPTLCK TIOCGPTLCK TIOCGPTPEER TIOCPKT
    TIOCGETD);
/// Descriptors and readable file properties. Setting attributes is missing, because it works on
/// files opened for reading.
const DESCRIPTOR: &[u32] = values!(ioctl: FIONREAD FIONBIO FIOCLEX FIONCLEX FIOASYNC FIOQSIZE
    SIOCATMARK FICLONE FICLONERANGE FS_IOC_GETFLAGS
    FS_IOC_GETVERSION FS_IOC_FSGETXATTR FS_IOC_FIEMAP FIGETBSZ RNDGETENTCNT);
/// Queries of network interfaces. Changing them needs a capability.
const NETWORK: &[u32] = values!(ioctl: SIOCGIFCONF SIOCGIFNAME SIOCGIFFLAGS SIOCGIFADDR
    SIOCGIFDSTADDR SIOCGIFBRDADDR SIOCGIFNETMASK SIOCGIFMTU
    SIOCGIFHWADDR SIOCGIFINDEX SIOCGIFMETRIC SIOCGIFTXQLEN SIOCGIFMAP);
/// `SIOCETHTOOL`, which reports the speed of an interface and is missing in `linux-raw-sys`.
const NETWORK_SPEED: u32 = 0x8946;

/// Descriptors, locks, pipes and seals. Leases are missing because they block other programs that
/// open the file.
const FCNTL: &[u32] = values!(general: F_DUPFD F_DUPFD_CLOEXEC F_DUPFD_QUERY F_CREATED_QUERY
    F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_SETLK
    F_SETLKW F_OFD_GETLK F_OFD_SETLK F_OFD_SETLKW F_CANCELLK F_GETOWN F_SETOWN F_GETOWN_EX
    F_SETOWN_EX F_GETOWNER_UIDS F_GETSIG F_SETSIG
    F_GETPIPE_SZ F_SETPIPE_SZ F_GET_SEALS F_ADD_SEALS F_GET_RW_HINT F_SET_RW_HINT
    F_GET_FILE_RW_HINT F_SET_FILE_RW_HINT);

/// Settings of the process itself. `PR_SCHED_CORE` is missing because it affects other processes,
/// as are options that need a capability.
const PRCTL: &[u32] = values!(prctl: PR_SET_PDEATHSIG PR_GET_PDEATHSIG PR_GET_DUMPABLE
    PR_SET_DUMPABLE PR_GET_UNALIGN PR_SET_UNALIGN
    PR_GET_KEEPCAPS PR_SET_KEEPCAPS PR_GET_FPEMU PR_SET_FPEMU PR_GET_FPEXC PR_SET_FPEXC
    PR_GET_TIMING PR_SET_TIMING PR_SET_NAME PR_GET_NAME
    PR_GET_ENDIAN PR_SET_ENDIAN PR_GET_SECCOMP PR_SET_SECCOMP PR_CAPBSET_READ PR_CAPBSET_DROP
    PR_CAP_AMBIENT PR_GET_TSC PR_SET_TSC
    PR_GET_SECUREBITS PR_SET_TIMERSLACK PR_GET_TIMERSLACK PR_MCE_KILL PR_MCE_KILL_GET
    PR_SET_CHILD_SUBREAPER PR_GET_CHILD_SUBREAPER
    PR_SET_NO_NEW_PRIVS PR_GET_NO_NEW_PRIVS PR_GET_TID_ADDRESS PR_SET_THP_DISABLE
    PR_GET_THP_DISABLE PR_SET_FP_MODE PR_GET_FP_MODE
    PR_SVE_SET_VL PR_SVE_GET_VL PR_SME_SET_VL PR_SME_GET_VL PR_GET_SPECULATION_CTRL
    PR_SET_SPECULATION_CTRL PR_PAC_RESET_KEYS
    PR_PAC_SET_ENABLED_KEYS PR_PAC_GET_ENABLED_KEYS PR_SET_TAGGED_ADDR_CTRL PR_GET_TAGGED_ADDR_CTRL
    PR_SET_SYSCALL_USER_DISPATCH
    PR_SET_MDWE PR_GET_MDWE PR_SET_VMA PR_GET_AUXV PR_SET_PTRACER PR_GET_MEMORY_MERGE
    PR_SET_MEMORY_MERGE PR_RISCV_V_SET_CONTROL
    PR_RISCV_V_GET_CONTROL PR_RISCV_SET_ICACHE_FLUSH_CTX PR_GET_SHADOW_STACK_STATUS
    PR_SET_SHADOW_STACK_STATUS
    PR_LOCK_SHADOW_STACK_STATUS PR_TIMER_CREATE_RESTORE_IDS PR_FUTEX_HASH);

pub(super) fn groups() -> Vec<SyscallGroup> {
    vec![
        deny_if_with_errno(
            calls!(__NR_ioctl),
            [none_of(1, &[TERMINAL, DESCRIPTOR, NETWORK, &[NETWORK_SPEED]].concat())],
            libc::ENOTTY,
            "each driver and file system has its own operations; some insert input into the user's \
                terminal, or change files through read-only descriptors",
        ),
        deny_if_with_errno(
            calls!(__NR_fcntl),
            [none_of(1, FCNTL)],
            libc::EINVAL,
            "a lease on a readable file delays its writers, and a notification reveals the use of \
                a directory",
        ),
        deny_if_with_errno(
            calls!(__NR_prctl),
            [none_of(0, PRCTL)],
            libc::EINVAL,
            "some options affect other processes",
        ),
        deny_if(
            calls!(__NR_personality),
            // Querying the current personality and setting the default one change nothing.
            [vec![ArgumentTest::NotEqual(0, 0), ArgumentTest::NotEqual(0, 0xffff_ffff)]],
            "it disables protections such as ASLR",
        ),
    ]
}
