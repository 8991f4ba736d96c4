export interface PackageSpec {
  readonly name: string;
  /** The description of the Debian package, whose first line is the synopsis. */
  readonly description: readonly string[];
  /** The folder below /usr/lib/muster into which the package installs its program and its own Node.js. */
  readonly home: string;
  /** The folders of the repository with the sources of the package's program. */
  readonly sources: readonly string[];
  /** Folders and files below `sources` that the package does not contain, because only a build or a browser uses them. */
  readonly leavesOut: readonly string[];
  /** The folder of the built console, which the build writes into the package; null for a package without a console. */
  readonly console: string | null;
  /**
   * The npm packages that the package's program imports. The build automatically adds the dependencies of the npm packages that a program imports.
   */
  readonly npm: readonly string[];
  /** npm packages with binaries have one name for each architecture, `name-<architecture>`, for example the embedded database. */
  readonly binaries: Readonly<Record<Architecture, readonly string[]>>;
  /** The package's commands in /usr/bin, with the program of each. */
  readonly commands: Readonly<Record<string, string>>;
  readonly nodeOptions: readonly string[];
  /** Files in `packaging/<home>/`, each with the path at which the Debian package installs the file. */
  readonly files: Readonly<Record<string, string>>;
  /** Files of the package that commands of the program `muster` write: for the path of each file, the arguments of the command. */
  readonly written: Readonly<Record<string, readonly string[]>>;
  /** Files in `docs/` that the package installs into /usr/share/doc/<name>. */
  readonly docs: readonly string[];
  /**
   * Other packages of this repository that this package contains, in /usr/share/muster/packages. The build makes each package before the packages
   * that contain it.
   */
  readonly carries: readonly string[];
  /**
   * The configuration files that the package installs below /etc. An upgrade of the package keeps the operator's changes to its configuration files.
   */
  readonly conffiles: readonly string[];
  readonly depends: readonly string[];
  readonly recommends: readonly string[];
}

export const ARCHITECTURES = { amd64: "x64", arm64: "arm64" } as const;
export type Architecture = keyof typeof ARCHITECTURES;
