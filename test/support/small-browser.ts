/** A browser without scripts: it keeps cookies by host and port, follows redirections, and sends the marks of a navigation. */
export interface Visited {
  readonly url: string;
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

const MOST_STEPS = 20;

export class SmallBrowser {
  readonly #jars = new Map<string, Map<string, string>>();

  /** The cookies for an address, by name. */
  cookies(url: string): Map<string, string> {
    const { host } = new URL(url);
    const jar = this.#jars.get(host) ?? new Map<string, string>();
    this.#jars.set(host, jar);
    return jar;
  }

  /** Sends one request with the cookies of its address, and follows no redirection. */
  async send(url: string, request: RequestInit = {}): Promise<Response> {
    const jar = this.cookies(url);
    const headers = new Headers(request.headers);
    if (jar.size > 0 && !headers.has("cookie"))
      headers.set("cookie", [...jar].map(([name, value]) => `${name}=${value}`).join("; "));
    const response = await fetch(url, { ...request, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      const [pair = "", ...attributes] = line.split(";").map((part) => part.trim());
      const name = pair.slice(0, pair.indexOf("="));
      const value = pair.slice(pair.indexOf("=") + 1);
      const gone = attributes.some((one) => /^max-age=0$/i.test(one) || /^expires=Thu, 01 Jan 1970/i.test(one));
      if (gone || value === "") jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  }

  /** Visits an address as a person does, until an answer redirects no further or `stopAt` recognizes the next address. */
  async visit(
    url: string,
    request: RequestInit = {},
    stopAt: (url: string) => boolean = () => false,
  ): Promise<Visited> {
    let at = url;
    let next: RequestInit = request;
    for (let step = 0; step < MOST_STEPS; step += 1) {
      if (stopAt(at)) return { url: at, status: 0, text: "", headers: new Headers() };
      const response = await this.send(at, next);
      const location = response.headers.get("location");
      const text = await response.text();
      if (response.status < 300 || response.status > 399 || location === null)
        return { url: at, status: response.status, text, headers: response.headers };
      at = new URL(location, at).href;
      next = {};
    }
    throw new Error(`${url} leads to more than ${MOST_STEPS} redirections`);
  }
}
