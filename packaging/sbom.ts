import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { npmClosure } from "./npm-closure.ts";
import { ARCHITECTURES, type Architecture, type PackageSpec } from "./package-spec.ts";

/** The licence field in the package.json of an npm package. Old npm packages have a list of licences in place of one licence. */
const License = z.union([
  z.string(),
  z.array(z.object({ type: z.string() })).transform((all) => all.map(({ type }) => type).join(" OR ")),
]);
const Lockfile = z.object({
  packages: z.record(
    z.string(),
    z.object({ version: z.string().optional(), license: License.optional(), integrity: z.string().optional() }),
  ),
});

export interface SbomOf {
  readonly repository: string;
  readonly spec: PackageSpec;
  readonly architecture: Architecture;
  readonly version: string;
  /** The time of the repository's last commit, so that the same commit always gives the same bytes. */
  readonly sourceDateEpoch: number;
  /** The npm packages whose code the built console contains. */
  readonly bundled: readonly Bundled[];
}

/** One npm package in the console's build, as the build names it in its file of licences. */
export const Bundled = z.object({ name: z.string(), version: z.string() });
type Bundled = z.output<typeof Bundled>;

/** An npm package that is both in the built console and in the package's node_modules is one component of the bill of materials. */
function bundledPaths(packages: z.output<typeof Lockfile>["packages"], bundled: readonly Bundled[]): string[] {
  return bundled.map(({ name, version }) => {
    const path = Object.keys(packages).find(
      (one) => one.endsWith(`node_modules/${name}`) && packages[one]?.version === version,
    );
    if (path === undefined) throw new Error(`package-lock.json has no ${name} ${version}, which the console contains`);
    return path;
  });
}

export const sbomName = ({ spec, version, architecture }: Omit<SbomOf, "bundled">): string =>
  `${spec.name}_${version}_${architecture}.cdx.json`;

const debOf = (name: string, { version, architecture }: Omit<SbomOf, "bundled">) => ({
  type: "application",
  "bom-ref": `pkg:deb/muster/${name}@${version}?arch=${architecture}`,
  name,
  version,
  purl: `pkg:deb/muster/${name}@${version}?arch=${architecture}`,
});

/** Returns a package's bill of materials, which lists the package's third-party components from the lock file as CycloneDX 1.6. */
export function sbomOf(about: SbomOf): object {
  const { repository, spec, architecture, sourceDateEpoch } = about;
  const { packages } = Lockfile.parse(JSON.parse(readFileSync(join(repository, "package-lock.json"), "utf8")));
  const binaries = [...spec.binaries[architecture], `node-linux-${ARCHITECTURES[architecture]}`];
  const component = (path: string) => {
    const { version, license, integrity } = packages[path] ?? {};
    if (version === undefined) throw new Error(`package-lock.json has no version of ${path}; run npm install`);
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const sha512 = /^sha512-(\S+)$/.exec(integrity ?? "")?.[1];
    return {
      type: "library",
      "bom-ref": path,
      name,
      version,
      purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
      ...(sha512 === undefined
        ? {}
        : { hashes: [{ alg: "SHA-512", content: Buffer.from(sha512, "base64").toString("hex") }] }),
      ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
    };
  };
  const paths = new Set([
    ...npmClosure(repository, spec.npm),
    ...binaries.map((name) => `node_modules/${name}`),
    ...bundledPaths(packages, about.bundled),
  ]);
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(sourceDateEpoch * 1000).toISOString(),
      component: debOf(spec.name, about),
    },
    components: [...[...paths].map(component), ...spec.carries.map((name) => debOf(name, about))],
  };
}
