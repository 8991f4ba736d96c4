/** A Debian package of this repository. `packages.ts` lists all packages. */
export interface PackageSpec {
  readonly name: string;
  /** The description. The first line of the description is the synopsis. */
  readonly description: readonly string[];
  /** The folder below /usr/lib/muster with the program and its runtime. */
  readonly home: string;
  /** The folders of the repository with the program's sources. */
  readonly sources: readonly string[];
  /** The npm packages that the program imports. The build adds the dependencies of these packages automatically. */
  readonly npm: readonly string[];
  /** npm packages with binaries in `name-<architecture>`, for example the embedded database. */
  readonly binaries: Readonly<Record<Architecture, readonly string[]>>;
  /** The commands in /usr/bin, with the program of each. */
  readonly commands: Readonly<Record<string, string>>;
  /** Options of Node.js for the package's programs. */
  readonly nodeOptions: readonly string[];
  /** Files in `packaging/<home>/`, each with the path of its installation. */
  readonly files: Readonly<Record<string, string>>;
  /** Files in `docs/` that are installed into /usr/share/doc/<name>. */
  readonly docs: readonly string[];
  /** Packages of this repository that this package contains, in /usr/share/muster/packages. The contained packages are built first. */
  readonly carries: readonly string[];
  /** Configuration files below /etc. An upgrade keeps the operator's changes. */
  readonly conffiles: readonly string[];
  readonly depends: readonly string[];
  readonly recommends: readonly string[];
}

/** Debian's name of each architecture, with npm's and Node's name. */
export const ARCHITECTURES = { amd64: "x64", arm64: "arm64" } as const;
export type Architecture = keyof typeof ARCHITECTURES;
