// A candidate's browser without a screen: it keeps cookies and follows one redirect at a time.

/** A browser with one cookie jar; `sentTo` lists every address it was redirected to. */
export function createBrowser() {
  const jar = new Map<string, string>();
  const sentTo: string[] = [];
  const go = async (url: string): Promise<Response> => {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await fetch(url, { redirect: 'manual', ...(cookie && { headers: { cookie } }) });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      jar.set(name, value);
    }
    const location = answer.headers.get('location');
    if (location !== null) sentTo.push(location);
    return answer;
  };
  /** Requests a URL and returns the address that it redirects to. */
  const step = async (url: string): Promise<string> => (await go(url)).headers.get('location') ?? '';
  return {
    jar,
    sentTo,
    go,
    step,
    /** Goes from start to the callback URL to which the source redirects the browser. */
    toCallback: async (startUrl: string) => await step(await step(startUrl)),
    /** Goes from start to the address on the careers site. */
    async toReturn(startUrl: string): Promise<URL> {
      return new URL(await step(await step(await step(startUrl))));
    },
  };
}
