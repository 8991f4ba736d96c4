import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

const Lockfile = z.object({
  packages: z.record(
    z.string(),
    z.object({
      dependencies: z.record(z.string(), z.string()).optional(),
      peerDependencies: z.record(z.string(), z.string()).optional(),
      peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean().optional() })).optional(),
    }),
  ),
});

/**
 * Returns the paths of npm packages and all their dependencies, as in the lock file, for example `node_modules/a`, `node_modules/a/node_modules/b`.
 * `npmClosure` returns the paths of npm packages in sorted order. `npmClosure` finds the dependency of an npm package as Node.js does: in the
 * innermost node_modules first.
 */
export function npmClosure(repository: string, names: readonly string[]): string[] {
  const { packages } = Lockfile.parse(JSON.parse(readFileSync(join(repository, "package-lock.json"), "utf8")));
  const found = new Set<string>();
  const place = (name: string, from: string): string => {
    for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
      const candidate = at === "" ? `node_modules/${name}` : `${at}/node_modules/${name}`;
      if (candidate in packages) return candidate;
      if (at === "") throw new Error(`package-lock.json has no package ${name}; run npm install`);
    }
  };
  const add = (path: string): void => {
    if (found.has(path)) return;
    found.add(path);
    const entry = packages[path];
    const peers = Object.keys(entry?.peerDependencies ?? {}).filter(
      (peer) => entry?.peerDependenciesMeta?.[peer]?.optional !== true,
    );
    for (const name of [...Object.keys(entry?.dependencies ?? {}), ...peers]) add(place(name, path));
  };
  for (const name of names) add(place(name, ""));
  return [...found].sort();
}
