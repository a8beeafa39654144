// A real Chromium for tests: the one that CHROMIUM names, else the first one installed. It records the requests, console messages and
// errors of each page.
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const usual = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const quiet = [
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts Chromium; the error says what to install when there is none. */
export async function openBrowser(): Promise<Browser & AsyncDisposable> {
  const executablePath = process.env.CHROMIUM ?? usual.find((path) => existsSync(path));
  if (!executablePath)
    throw new Error('Chromium is not installed: apt-get install chromium, or set CHROMIUM to its path.');
  // Chromium does not start its sandbox as root, and CI containers run as root.
  const args = process.getuid?.() === 0 ? [...quiet, '--no-sandbox'] : quiet;
  const browser = await chromium.launch({ executablePath, args });
  return Object.assign(browser, { [Symbol.asyncDispose]: () => browser.close() });
}

/** A page in a separate context, with the URLs it requested and the messages and errors it reported. */
export interface NotedPage {
  readonly page: Page;
  readonly requests: string[];
  readonly complaints: string[];
}

export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<NotedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('console', (message) => {
    if (message.type() !== 'log') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('requestfailed', (request) => complaints.push(`${request.url()} ${request.failure()?.errorText}`));
  return { page, requests, complaints };
}

/** Finds texts that are cut off at the page's width: they extend beyond the page, or the svg of their chart. Runs in the browser. */
export const findClipped = `(() => {
  const clipped = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const isShown = node.textContent.trim() !== '' && !node.parentElement.closest('title, desc, .unseen');
    const page = { left: 0, right: innerWidth, top: -scrollY, bottom: Infinity };
    const frame = node.parentElement.closest('svg')?.getBoundingClientRect() ?? page;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of isShown ? range.getClientRects() : []) {
      const isInside = box.left >= frame.left && box.right <= frame.right && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
      if (!isInside) clipped.push(node.textContent + ' from ' + box.left + ' to ' + box.right);
    }
  }
  return clipped;
})()`;
