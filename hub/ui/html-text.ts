const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Returns text for a place in HTML. Control characters, which a host, a provider or a browser may have sent, become question marks. */
export const html = (text: string): string =>
  text.replace(/\p{Cc}/gu, "?").replace(/[&<>"']/g, (one) => ENTITIES[one] ?? one);
