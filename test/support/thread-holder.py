# One thread leaves the descriptors that it shares with the other threads, and then holds the file argv[1] under the number of a file that the other threads
# have open. By argv[2], the other threads have /dev/null open ("open"), the same, and the thread's file is removed ("deleted"), or the file argv[3], over
# which the device argv[1] is then mounted, so that both files have one path ("covered"). It prints a line when it holds the file, and ends with its
# standard input.
import ctypes
import os
import sys
import threading

CLONE_FILES, MS_BIND = 0x400, 0x1000
libc = ctypes.CDLL(None, use_errno=True)
path, kind = sys.argv[1:3]
shared = os.open(sys.argv[3] if kind == "covered" else "/dev/null", os.O_RDONLY)
if kind == "covered":
    assert libc.mount(path.encode(), sys.argv[3].encode(), None, MS_BIND, None) == 0
    path = sys.argv[3]


def hold():
    assert libc.unshare(CLONE_FILES) == 0
    own = os.open(path, os.O_RDONLY)
    os.dup2(own, shared)
    os.close(own)
    if kind == "deleted":
        os.unlink(path)
    print("ready", flush=True)
    threading.Event().wait()


for work in (threading.Event().wait, hold):
    threading.Thread(target=work, daemon=True).start()
sys.stdin.read()
