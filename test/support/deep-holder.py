# Holds a file open whose path has more than 4,095 bytes: below the folder argv[1], "folder", "deleted" (a removed file) or "device" (a device file with the
# number of /dev/zero) by argv[2]. It prints a line when it holds the file, and ends with its standard input.
import os
import stat
import sys

os.chdir(sys.argv[1])
for _ in range(25):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
if sys.argv[2] == "folder":
    held = os.open(".", os.O_RDONLY)
    os.chdir("/")
elif sys.argv[2] == "cwd":
    pass
elif sys.argv[2] == "deleted":
    held = os.open("file", os.O_RDWR | os.O_CREAT)
    os.unlink("file")
    os.chdir("/")
else:
    os.mknod("device", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    held = os.open("device", os.O_RDONLY)
    os.chdir("/")
print("ready", flush=True)
sys.stdin.read()
