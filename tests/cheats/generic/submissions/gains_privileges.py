"""Asks for root, capabilities, new namespaces, mounts and a chroot. Seen: container escapes. Expected: harmless."""

import contextlib
import ctypes
import os
import subprocess


def predict(xs):
    libc = ctypes.CDLL(None, use_errno=True)
    for ask in (os.setuid, os.setgid):
        with contextlib.suppress(OSError):
            ask(0)
            if os.getuid() == 0:
                print("GOT root")
    if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 or libc.umount2(b"/tmp", 2) == 0:
        print("GOT to mount")
    for ask in (lambda: os.chroot("/tmp"), lambda: os.mknod("/tmp/sda", 0o60600, os.makedev(8, 0))):
        with contextlib.suppress(OSError):
            ask()
            print("GOT a chroot or a device")
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(["sudo", "-n", "id"], capture_output=True, timeout=2)
        if done.returncode == 0:
            print("GOT sudo")
    return [14.0 for _ in xs]
