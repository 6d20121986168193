//! System calls without libc in between.
//!
//! A child that shares the keeper's memory until its exec ([`crate::process::launch::cradle`]) shares libc's `errno` as well. If it wrote
//! there, the keeper could mistake the child's failure for its own. Here the error is in the answer. On machines whose
//! calling convention does not stand here the calls go through libc, and children are forked.

use std::ffi::{c_int, c_long};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the keeper speaks to 64-bit kernels only: elsewhere some of its system calls take smaller ids");

/// Calls the kernel: what it returned, or the errno.
///
/// # Safety
/// As the system call says.
pub(crate) unsafe fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> Result<usize, c_int> {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    // SAFETY: the caller keeps the rules of the call.
    let answer = unsafe { direct(number, all) };
    if answer < 0 { Err(i32::try_from(-answer).unwrap_or(libc::EINVAL)) } else { Ok(answer.unsigned_abs()) }
}

#[cfg(target_arch = "x86_64")]
unsafe fn direct(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let answer;
    // SAFETY: the kernel's calling convention; the caller keeps the rules of the call.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn direct(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    // SAFETY: the caller keeps the rules of the call.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) } as isize;
    if answer < 0 { -(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL) as isize) } else { answer }
}

/// clone3 with a stack for the child, which begins with `begin(argument)`. The answer is the parent's.
///
/// # Safety
/// As clone3 says; `arguments` must have a stack whose end is aligned to 16 bytes, and `begin` must never return.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn clone_into<A, T>(
    arguments: &A,
    begin: unsafe extern "C" fn(*const T) -> !,
    argument: *const T,
) -> Result<usize, c_int> {
    let answer: isize;
    // SAFETY: the parent goes on behind the label with its registers intact. The child has a stack of its own and never returns from
    // the call.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => answer,
            in("rdi") std::ptr::from_ref(arguments), in("rsi") size_of::<A>(),
            in("r12") argument, in("r13") begin,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    if answer < 0 { Err(i32::try_from(-answer).unwrap_or(libc::EINVAL)) } else { Ok(answer.unsigned_abs()) }
}

/// Not known here.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn clone_into<A, T>(
    _: &A,
    _: unsafe extern "C" fn(*const T) -> !,
    _: *const T,
) -> Result<usize, c_int> {
    Err(libc::ENOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_holds_the_error_and_errno_stays() {
        // SAFETY: numbers only.
        unsafe {
            *libc::__errno_location() = 0;
            assert_eq!(call(libc::SYS_close, [usize::MAX]), Err(libc::EBADF));
            assert_eq!(call(libc::SYS_getpid, []), Ok(std::process::id() as usize));
        }
        if cfg!(target_arch = "x86_64") {
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(0));
        }
    }
}
