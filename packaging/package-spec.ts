/** A Debian package that this repository builds; `packages.ts` lists them all. */
export interface PackageSpec {
  readonly name: string;
  /** First line is the synopsis. */
  readonly description: readonly string[];
  /** Folder below /usr/lib/muster that holds program and runtime. */
  readonly home: string;
  /** Folders of the repository that the program consists of. */
  readonly sources: readonly string[];
  /** npm packages that the program imports; what they need in turn comes along. */
  readonly npm: readonly string[];
  /** npm packages that come as `name-<architecture>` binaries, e.g. the embedded database. */
  readonly binaries: Readonly<Record<Architecture, readonly string[]>>;
  /** Command in /usr/bin -> program it starts. */
  readonly commands: Readonly<Record<string, string>>;
  /** What its programs' Node.js is told. */
  readonly nodeOptions: readonly string[];
  /** Files of `packaging/<home>/` -> where they go. */
  readonly files: Readonly<Record<string, string>>;
  /** Files of `docs/` that come along, in /usr/share/doc/<name>. */
  readonly docs: readonly string[];
  /** Packages of this repository that come inside this one, in /usr/share/muster/packages; they are built before it. */
  readonly carries: readonly string[];
  /** Below /etc: an upgrade keeps what the operator changed. */
  readonly conffiles: readonly string[];
  readonly depends: readonly string[];
  readonly recommends: readonly string[];
}

/** Debian's name -> npm's and Node's. */
export const ARCHITECTURES = { amd64: "x64", arm64: "arm64" } as const;
export type Architecture = keyof typeof ARCHITECTURES;
