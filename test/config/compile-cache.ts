/**
 * Node caches the compiled TypeScript of the hub and of other programs in `node_modules`. With a filled compile cache, a program starts in three
 * quarters of the processor time.
 */
export default function setup(): void {
  process.env["NODE_COMPILE_CACHE"] ??= new URL("../../node_modules/.cache/muster-compiled", import.meta.url).pathname;
}
