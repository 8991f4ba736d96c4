/**
 * Node caches compiled TypeScript in `node_modules`, also that of the hub and of other programs that tests start. With a filled compile cache, a
 * program starts in three quarters of the processor time.
 */
export default function setup(): void {
  process.env["NODE_COMPILE_CACHE"] ??= new URL("../../node_modules/.cache/muster-compiled", import.meta.url).pathname;
}
