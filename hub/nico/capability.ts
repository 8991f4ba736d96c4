const UNKNOWN = { name: null, frequency: null, cores: null, threads: null, capacity: null, vendor: null };

/** One of NICo's MachineCapabilities; what Muster does not know of it is null. */
export const capability = <Known extends { readonly type: string; readonly count: number }>(known: Known) => ({
  ...UNKNOWN,
  ...known,
});
