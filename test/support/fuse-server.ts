/** Who mounts a FUSE file system in a test, and how its server behaves. */
export interface FuseServer {
  readonly folder: string;
  /** The user as whom the file system is mounted, and as whom the server runs. */
  readonly uid: number;
  /** Python lines that run when the file system is mounted, for example the start of a thread that looks at the file system. */
  readonly program: string;
}

/**
 * Returns a Python program, to be run as root, that mounts a FUSE file system as `fusermount` does for a user, and serves it as this user. The server
 * answers the kernel's first request and then reads requests without an answer, so each look at the file system waits until the server's end.
 */
export const fuseServer = ({ folder, uid, program }: FuseServer): string => `
import os, ctypes, signal, struct, threading, time
libc = ctypes.CDLL(None, use_errno=True)
device = os.open("/dev/fuse", os.O_RDWR)
options = "fd=%d,rootmode=40000,user_id=${uid},group_id=${uid}${uid === 0 ? ",allow_other" : ""}" % device
if libc.mount(b"server", b"${folder}", b"fuse.mtst", 6, options.encode()) != 0: raise OSError(ctypes.get_errno(), "mount")
if ${uid} != 0: os.setgroups([]); os.setgid(${uid}); os.setuid(${uid})
length, opcode, unique = struct.unpack("IIQ", os.read(device, 1 << 20)[:16])
answer = struct.pack("IIIIHHIIHHI", 7, 31, 65536, 0, 12, 10, 65536, 1, 1, 0, 0) + bytes(28)
os.write(device, struct.pack("IiQ", 16 + len(answer), 0, unique) + answer)
${program}
`;

/** A Python line: a thread looks at a FUSE file system, or ends the process if it must not look. */
export const lookAt = (folder: string): string =>
  `threading.Thread(target=lambda: os.access("${folder}/file", os.F_OK) or os._exit(1), daemon=True).start()`;

/** Python lines for `FuseServer.program`: a thread of the server waits for the server's own file system, and no signal ends this wait. */
export const waitsForItself = (folder: string): string => `
${lookAt(folder)}
os.read(device, 1 << 20)
print("ready", flush=True)
time.sleep(1000)`;
