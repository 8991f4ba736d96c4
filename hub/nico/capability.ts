const UNKNOWN = { name: null, frequency: null, cores: null, threads: null, capacity: null, vendor: null };

/** One of the MachineCapabilities in NICo's API, where each field that Muster does not know is null. */
export const capability = <Known extends { readonly type: string; readonly count: number }>(known: Known) => ({
  ...UNKNOWN,
  ...known,
});
