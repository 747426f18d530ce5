//! The system calls that a command does not get, each with the reason. What is not here goes through: Landlock, the
//! namespaces and the rights of the user decide on it.

use libc::c_long;

use super::super::super::confine::order::Sockets;

/// One system call that is refused.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) number: c_long,
    pub(super) when: When,
    /// For who reads this list.
    #[allow(dead_code, reason = "the table is documentation as much as data")]
    pub(super) why: &'static str,
}

/// When it is.
#[derive(Debug)]
pub(super) enum When {
    Always,
    /// If one of these holds, each of which is a list of which all have to hold.
    Any(Vec<Vec<Is>>),
}

/// A test of one argument, by its number from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Is {
    Equal(u8, u64),
    Not(u8, u64),
    /// These bits of it are all set.
    Has(u8, u64),
    /// The bits of the mask have this value.
    Masked(u8, u64, u64),
}

/// The newest system call that this list knows of, `removexattrat` of Linux 6.13. A newer one could be a way around it: to
/// the command it is as on an older kernel.
pub(super) const NEWEST_KNOWN: u32 = 466;

/// Programs fall back to `clone` and `open`, whose arguments can be looked at; those of these lie in memory.
pub(super) const AS_IF_NOT_THERE: &[(c_long, &str)] = &[
    (libc::SYS_clone3, "its flags cannot be looked at, and could ask for namespaces"),
    (libc::SYS_openat2, "its mode cannot be looked at, and could make a file that runs as its owner"),
];

const SET_ID: [u64; 2] = [0o4000, 0o2000];

fn always(number: c_long, why: &'static str) -> Refused {
    Refused { number, when: When::Always, why }
}

fn any(number: c_long, tests: impl IntoIterator<Item = Vec<Is>>, why: &'static str) -> Refused {
    Refused { number, when: When::Any(tests.into_iter().collect()), why }
}

/// The whole list.
pub(super) fn refused(sockets: Sockets) -> Vec<Refused> {
    let mut all = Vec::new();
    all.extend(mounts());
    all.extend(kernel());
    all.extend(processes());
    all.extend(set_id());
    all.extend(for_sockets(sockets));
    all
}

fn mounts() -> Vec<Refused> {
    const WHY: &str = "what is mounted where is part of the sandbox";
    let numbers = [
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
    ];
    let mut all: Vec<_> = numbers.into_iter().map(|number| always(number, WHY)).collect();
    all.push(always(libc::SYS_open_by_handle_at, "it opens files by number, past every path"));
    all
}

fn kernel() -> Vec<Refused> {
    vec![
        always(libc::SYS_bpf, "programs in the kernel; much of what was wrong in it was here"),
        always(libc::SYS_io_uring_setup, "it does what system calls do without being looked at"),
        always(libc::SYS_io_uring_enter, "see io_uring_setup"),
        always(libc::SYS_io_uring_register, "see io_uring_setup"),
        always(libc::SYS_userfaultfd, "it holds the kernel still in the middle of a copy, which makes races easy to win"),
        always(libc::SYS_perf_event_open, "it measures other processes and the kernel"),
        always(libc::SYS_keyctl, "keyrings belong to the user's whole session"),
        always(libc::SYS_add_key, "see keyctl"),
        always(libc::SYS_request_key, "see keyctl"),
        always(libc::SYS_init_module, "code for the kernel"),
        always(libc::SYS_finit_module, "code for the kernel"),
        always(libc::SYS_delete_module, "code of the kernel"),
        always(libc::SYS_kexec_load, "another kernel"),
        always(libc::SYS_kexec_file_load, "another kernel"),
        always(libc::SYS_reboot, "the machine is not the command's"),
        always(libc::SYS_swapon, "the machine is not the command's"),
        always(libc::SYS_swapoff, "the machine is not the command's"),
        always(libc::SYS_acct, "the machine is not the command's"),
        always(libc::SYS_quotactl, "the machine is not the command's"),
        always(libc::SYS_quotactl_fd, "the machine is not the command's"),
        always(libc::SYS_settimeofday, "the clock is everybody's"),
        always(libc::SYS_clock_settime, "the clock is everybody's"),
        always(libc::SYS_sethostname, "the name is everybody's"),
        always(libc::SYS_setdomainname, "the name is everybody's"),
        always(libc::SYS_syslog, "the kernel's messages hold addresses and what others do"),
        always(libc::SYS_lookup_dcookie, "a relic"),
        always(libc::SYS_nfsservctl, "a relic"),
        always(libc::SYS_vhangup, "it takes the terminal from others"),
        #[cfg(target_arch = "x86_64")]
        always(libc::SYS_iopl, "the ports of the hardware"),
        #[cfg(target_arch = "x86_64")]
        always(libc::SYS_ioperm, "the ports of the hardware"),
        any(libc::SYS_ioctl, [vec![Is::Equal(1, libc::TIOCSTI)]], "it types at the user's terminal"),
        any(libc::SYS_ioctl, [vec![Is::Equal(1, 0x541c)]], "TIOCLINUX pastes at the user's console"),
        any(
            libc::SYS_personality,
            // Asking for the present one, and choosing the usual one, change nothing.
            [vec![Is::Not(0, 0), Is::Not(0, 0xffff_ffff)]],
            "it switches off protections such as random addresses",
        ),
    ]
}

fn processes() -> Vec<Refused> {
    const NAMESPACES: [i32; 7] = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let asks = |flag: i32| vec![Is::Has(0, u64::from(flag.cast_unsigned()))];
    vec![
        any(libc::SYS_clone, NAMESPACES.map(asks), "in a namespace of its own it is its own root, which opens much of the kernel"),
        always(libc::SYS_unshare, "see clone"),
        always(libc::SYS_setns, "see clone"),
        always(libc::SYS_process_vm_writev, "it writes into other processes"),
        any(libc::SYS_prlimit64, [vec![Is::Not(0, 0)]], "it sets the limits of other processes"),
        any(libc::SYS_setpriority, [vec![Is::Not(0, 0)], vec![Is::Not(1, 0)]], "it slows other processes"),
        always(libc::SYS_kcmp, "it compares what other processes hold"),
        always(libc::SYS_pidfd_getfd, "it takes files from other processes"),
    ]
}

/// A file that runs as its owner outlives the sandbox.
fn set_id() -> Vec<Refused> {
    const WHY: &str = "a file that runs as its owner would be the user's for whoever starts it";
    let bits = |argument| SET_ID.map(|bit| vec![Is::Has(argument, bit)]);
    let creating = |flags, mode| SET_ID.map(|bit| vec![Is::Has(flags, u64::from(libc::O_CREAT.cast_unsigned())), Is::Has(mode, bit)]);
    vec![
        any(libc::SYS_fchmod, bits(1), WHY),
        any(libc::SYS_fchmodat, bits(2), WHY),
        any(libc::SYS_fchmodat2, bits(2), WHY),
        any(libc::SYS_mknodat, bits(2), WHY),
        any(libc::SYS_openat, creating(2, 3), WHY),
        #[cfg(target_arch = "x86_64")]
        any(libc::SYS_chmod, bits(1), WHY),
        #[cfg(target_arch = "x86_64")]
        any(libc::SYS_mknod, bits(1), WHY),
        #[cfg(target_arch = "x86_64")]
        any(libc::SYS_creat, bits(1), WHY),
        #[cfg(target_arch = "x86_64")]
        any(libc::SYS_open, creating(1, 2), WHY),
    ]
}

fn for_sockets(sockets: Sockets) -> Vec<Refused> {
    const FAMILY: &str = "families that nobody needs, and much of what was wrong in the kernel";
    const KIND: u64 = 0xf;
    let [unix, inet, inet6, netlink, raw, datagram] =
        [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::SOCK_RAW, libc::SOCK_DGRAM]
            .map(|number| u64::from(number.cast_unsigned()));
    let none_of = |families: &[u64]| families.iter().map(|family| Is::Not(0, *family)).collect::<Vec<_>>();
    let raw_sockets = any(
        libc::SYS_socket,
        [inet, inet6].map(|family| vec![Is::Equal(0, family), Is::Masked(1, KIND, raw)]),
        "it reads and forges the packets of others",
    );
    let other_netlink = any(
        libc::SYS_socket,
        // Which interfaces there are is all that programs ask.
        [vec![Is::Equal(0, netlink), Is::Not(2, u64::from(libc::NETLINK_ROUTE.cast_unsigned()))]],
        "it configures the kernel",
    );
    let loose_pairs = any(
        libc::SYS_socketpair,
        [vec![Is::Masked(1, KIND, datagram)]],
        "a datagram socket of a pair can still send to any socket with a path, such as that of a service manager",
    );
    let shared = [
        libc::SYS_shmget,
        libc::SYS_shmat,
        libc::SYS_shmctl,
        libc::SYS_semget,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_semctl,
        libc::SYS_msgget,
        libc::SYS_msgsnd,
        libc::SYS_msgrcv,
        libc::SYS_msgctl,
    ];
    let shared = shared.map(|number| always(number, "memory and messages of System V are shared with all processes of the user"));
    match sockets {
        Sockets::Own | Sockets::OwnAndNetwork => {
            vec![any(libc::SYS_socket, [none_of(&[unix, inet, inet6, netlink])], FAMILY), raw_sockets, other_netlink]
        }
        Sockets::Pairs => vec![
            always(libc::SYS_socket, "the network is not granted, and a socket with a path may be that of a service that starts programs"),
            loose_pairs,
        ]
        .into_iter()
        .chain(shared)
        .collect(),
        Sockets::PairsAndNetwork => {
            let network = [any(libc::SYS_socket, [none_of(&[inet, inet6, netlink])], FAMILY), raw_sockets, other_netlink, loose_pairs];
            network.into_iter().chain(shared).collect()
        }
    }
}
