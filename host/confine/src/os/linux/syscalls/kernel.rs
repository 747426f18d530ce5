//! System calls that affect the kernel, the machine or all processes. Most known kernel exploits
//! use these.

use super::{SyscallGroup, calls, deny, deny_as_absent};

pub(super) fn groups() -> Vec<SyscallGroup> {
    vec![
        deny(calls!(__NR_bpf), "it loads programs into the kernel, and had many vulnerabilities"),
        deny(
            calls!(__NR_io_uring_setup __NR_io_uring_enter __NR_io_uring_register),
            "it performs operations that bypass this filter",
        ),
        deny(
            calls!(__NR_userfaultfd),
            "it can pause the kernel during a copy, which makes races easy to exploit",
        ),
        deny(calls!(__NR_perf_event_open), "it can measure other processes and the kernel"),
        deny(
            calls!(__NR_keyctl __NR_add_key __NR_request_key),
            "keyrings belong to the whole login session of the user",
        ),
        deny(
            calls!(__NR_init_module __NR_finit_module __NR_delete_module),
            "they load kernel code",
        ),
        deny(calls!(__NR_kexec_load __NR_kexec_file_load), "another kernel"),
        deny(
            calls!(__NR_reboot __NR_swapon __NR_swapoff __NR_acct __NR_quotactl __NR_quotactl_fd
                __NR_vhangup),
            "they affect the whole machine",
        ),
        deny(
            calls!(__NR_settimeofday __NR_clock_settime __NR_adjtimex __NR_clock_adjtime),
            "all programs share the clock",
        ),
        deny(
            calls!(__NR_sethostname __NR_setdomainname),
            "all programs share the name of the machine",
        ),
        deny(
            calls!(__NR_syslog),
            "kernel messages contain addresses and information about other processes",
        ),
        deny_as_absent(
            calls!(__NR_lsm_get_self_attr __NR_lsm_set_self_attr __NR_lsm_list_modules
                __NR_memfd_secret),
            "it is new and rarely used; programs have fallbacks",
        ),
        deny_as_absent(
            calls!(__NR_lookup_dcookie __NR_nfsservctl),
            "current kernels no longer have them",
        ),
        #[cfg(target_arch = "x86_64")]
        deny(calls!(__NR_iopl __NR_ioperm), "they give access to hardware ports"),
        #[cfg(target_arch = "x86_64")]
        deny_as_absent(
            calls!(__NR_modify_ldt __NR_set_thread_area __NR_get_thread_area),
            "they create segments for 16-bit and 32-bit programs, which had many vulnerabilities",
        ),
        #[cfg(target_arch = "x86_64")]
        deny_as_absent(
            calls!(__NR_uselib __NR_sysfs __NR_ustat __NR__sysctl __NR_create_module
                __NR_get_kernel_syms __NR_query_module
                __NR_getpmsg __NR_putpmsg __NR_afs_syscall __NR_tuxcall __NR_security __NR_vserver
                __NR_epoll_ctl_old
                __NR_epoll_wait_old),
            "current kernels do not have them",
        ),
    ]
}
