// Sends the requests of the page of the SOAP service, and shows the answers.

function offerTry(form) {
  const block = form.closest('details');
  const [status, answer] = ['[data-status]', '[data-answer]'].map((part) => block.querySelector(part));
  const showEntered = () => {
    for (const mark of block.querySelectorAll('[data-argument]')) {
      mark.textContent = escapeXml(form.elements[mark.dataset.argument].value);
    }
  };
  // The link to an operation fills in its arguments.
  if (location.hash === `#${block.id}`) {
    for (const [name, value] of new URLSearchParams(location.search))
      if (form.elements[name]) form.elements[name].value = value;
    block.open = true;
    block.scrollIntoView();
    if (location.search !== '') form.dataset.asked = '';
  }
  // A browser may restore earlier input.
  showEntered();
  form.addEventListener('input', showEntered);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const session = document.getElementById('try-session');
    const token = document.getElementById('try-token').value.trim();
    const headers = { 'content-type': 'text/xml; charset=utf-8' };
    const usesSession = session?.checked === true;
    if (!usesSession && token !== '') headers.authorization = `Bearer ${token}`;
    const query = usesSession ? `?token=${session.dataset.formToken}` : '';
    const credentials = usesSession ? 'same-origin' : 'omit';
    const body = block.querySelector('[data-request]').textContent;
    const began = performance.now();
    status.textContent = 'Sent …';
    try {
      const response = await fetch(location.pathname + query, { method: 'POST', headers, body, credentials });
      const text = await response.text();
      const ms = Math.max(1, Math.round(performance.now() - began));
      status.textContent = `HTTP ${response.status} ${response.statusText} after ${ms} ms, ${text.length} characters.`;
      status.className = response.ok ? 'good' : 'bad';
      answer.querySelector('pre').textContent =
        indentXml(text.slice(0, 100_000)) + (text.length > 100_000 ? ' …' : '');
      answer.hidden = false;
      if ('asked' in form.dataset) markName(answer.querySelector('pre'));
    } catch (error) {
      status.textContent = `No response: ${error.message}`;
      status.className = 'bad';
      answer.hidden = true;
    }
  });
}

/** Marks the service that the address names. */
function markName(block) {
  const shown = new URLSearchParams(location.search).get('show') ?? '';
  const dot = shown.lastIndexOf('.');
  const name = `<Name>${escapeXml(shown.slice(0, dot))}</Name>`;
  const lines = block.textContent.split('\n');
  const found = lines.findIndex(
    (line, index) =>
      line.trim() === name && lines[index + 1]?.trim() === `<Type>${shown.slice(dot + 1)}</Type>`,
  );
  if (found < 0) return;
  const mark = document.createElement('mark');
  mark.textContent = name;
  const [before, after] = lines[found].split(name);
  const rest = [after, ...lines.slice(found + 1)];
  block.replaceChildren([...lines.slice(0, found), before].join('\n'), mark, rest.join('\n'));
  mark.scrollIntoView({ block: 'center' });
}

/** Escapes the apostrophe too: the text is also part of a quoted command. */
function escapeXml(text) {
  return text.replace(/[&<>'\r]/g, (character) => `&#${character.charCodeAt(0)};`);
}

function indentXml(xml) {
  let depth = 0;
  return xml
    .split('<')
    .map((tag, index, tags) => {
      const trimmed = tag.trimEnd();
      if (!trimmed.endsWith('>')) return tag;
      const isEmpty = tags[index + 1]?.startsWith(`/${trimmed}`);
      return isEmpty ? trimmed : `${trimmed}\n`;
    })
    .join('<')
    .trimEnd()
    .split('\n')
    .map((line) => {
      if (line.startsWith('</')) depth -= 1;
      const indented = '  '.repeat(Math.max(depth, 0)) + line;
      if (/^<[^!?/][^>]*>$/.test(line) && !line.endsWith('/>')) depth += 1;
      return indented;
    })
    .join('\n');
}

for (const form of document.querySelectorAll('form[data-try]')) offerTry(form);
// A link with arguments shows the answer at once.
for (const form of document.querySelectorAll('form[data-try][data-asked]')) form.requestSubmit();
