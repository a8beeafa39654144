// Finds texts that are cut off at the page's width: they extend beyond the page, or beyond the svg of their chart. Runs in the browser.

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
