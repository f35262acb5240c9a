// Optional behaviour of the pages: copy a command, follow a running job, refresh a page, try a SOAP operation. The pages work without it.

function offerCopy() {
  for (const block of document.querySelectorAll('[data-copy]')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'quiet';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(block.textContent ?? '');
      button.textContent = 'Copied';
    });
    block.after(button);
  }
}

if (navigator.clipboard) offerCopy();

function followJob(section) {
  const liveStatus = section.querySelector('[data-live-status]');
  const bar = section.querySelector('progress');
  const list = section.querySelector('[data-messages]');
  const cancel = section.querySelector('[data-until]');
  const figure = (name) => section.querySelector(`[data-figure="${name}"]`);
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const numberOf = (text) => (text ? Number(text) : null);
  let after = Number(section.dataset.after);
  let times = { elapsed: numberOf(section.dataset.elapsed), remaining: numberOf(section.dataset.remaining) };
  let since = performance.now();
  let isOver = false;

  function announce(text) {
    if (liveStatus.textContent !== text) liveStatus.textContent = text;
  }

  function showTimes() {
    const passed = performance.now() - since;
    figure('elapsed').textContent = formatDuration(times.elapsed + passed);
    const remaining = times.remaining === null ? null : times.remaining - passed;
    figure('remaining').textContent = formatRemaining(remaining);
  }

  function addMessage({ code, message, when }) {
    const line = document.createElement('li');
    line.dataset.code = code;
    const time = document.createElement('time');
    time.dateTime = new Date(when).toISOString();
    time.title = when;
    time.textContent = `${time.dateTime.slice(0, 19).replace('T', ' ')} UTC`;
    const number = document.createElement('code');
    number.textContent = code;
    const text = document.createElement('span');
    text.textContent = message;
    line.append(time, ' ', number, ' ', text);
    list.append(line);
    if (cancel?.dataset.until.split(' ').includes(String(code))) showCancel(false);
    // Another hop begins.
    else if (cancel && code === 2270) showCancel(true);
  }

  function showCancel(isPossible) {
    const [button, hint] = cancel.children;
    button.hidden = !isPossible;
    hint.hidden = isPossible;
  }

  function show({ status, messageCount, progress }) {
    const most = Number(list.dataset.messages);
    status.messages.slice(-most).forEach(addMessage);
    while (list.children.length > most) list.firstElementChild.remove();
    after = messageCount;
    figure('messages').textContent = messageCount;
    figure('done').textContent = `${progress.done} of ${progress.total}`;
    figure('steps').textContent = `${progress.steps.done} of ${progress.steps.total}`;
    figure('percent').textContent = `${progress.percent} %`;
    bar.value = progress.percent;
    times = { elapsed: progress.elapsedMs, remaining: progress.remainingMs };
    since = performance.now();
    showTimes();
    // A screen reader announces every change, so the text changes only every ten percent.
    const tenths = Math.floor(progress.percent / 10);
    announce(tenths > 0 ? `Following live: ${tenths * 10} % reached.` : 'Following live.');
  }

  async function poll() {
    const address = `${section.dataset.follow}&after=${after}`;
    const response = await fetch(address, { cache: 'no-store', signal: AbortSignal.timeout(60_000) });
    return response.json();
  }

  /** Without a session every further poll would fail. */
  function stop() {
    isOver = true;
    const link = document.createElement('a');
    link.href = location.pathname;
    link.textContent = 'Sign in again';
    liveStatus.replaceChildren(link, ' to follow the job.');
  }

  async function follow() {
    const jobId = new URL(section.dataset.follow, location.href).searchParams.get('jobId');
    for (let failures = 0; ;) {
      const answer = await poll().catch(() => ({}));
      if ([403, 498, 499].includes(answer.error?.code)) return stop();
      if (answer.status?.state && (answer.status.state !== 'in_progress' || answer.jobId !== jobId)) break;
      if (answer.progress) {
        failures = 0;
        show(answer);
        // The pause shows the messages of a fast job in batches.
        await pause(400);
      } else {
        failures += 1;
        announce('The connection is lost. Trying again …');
        await pause(Math.min(1000 * 2 ** failures, 15_000));
      }
    }
    // The query belongs to an earlier step.
    location.replace(location.pathname);
  }

  announce('Following live.');
  setInterval(() => isOver || showTimes(), 1000);
  void follow();
}

/** This must match `formatDuration` in src/lib/format.ts. */
function formatDuration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  const units = [
    ['day', 86_400_000],
    ['hour', 3_600_000],
    ['minute', 60_000],
    ['second', 1000],
  ];
  const [name, size] = units.find(([, least]) => ms >= least);
  const count = Math.floor(ms / size);
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

function formatRemaining(ms) {
  if (ms === null) return 'not known yet';
  return ms < 10_000 ? 'a few seconds' : `about ${formatDuration(ms)}`;
}

for (const section of document.querySelectorAll('[data-follow]')) followJob(section);

/** Shows the current state of a page: replaces each section that has changed, and keeps open what is open. */
function refresh(area) {
  const known = new Map();
  const sectionsOf = (node) => [...node.querySelectorAll('section')];

  async function load() {
    const response = await fetch(area.dataset.refresh, { cache: 'no-store' });
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const fresh = page.querySelector('[data-refresh]');
    return fresh ? sectionsOf(fresh) : [];
  }

  async function update() {
    const fresh = await load().catch(() => []);
    const shown = sectionsOf(area);
    fresh.forEach((section, index) => {
      if (known.get(index) === section.innerHTML) return;
      known.set(index, section.innerHTML);
      for (const { id } of shown[index].querySelectorAll('details[open]')) {
        section.querySelector(`#${id}`)?.setAttribute('open', '');
      }
      shown[index].replaceWith(section);
    });
    setTimeout(update, 1000);
  }

  void update();
}

for (const area of document.querySelectorAll('[data-refresh]')) refresh(area);

function offerTry(form) {
  const block = form.closest('details');
  const [status, answer] = ['[data-status]', '[data-answer]'].map((part) => block.querySelector(part));
  const showEntered = () => {
    for (const mark of block.querySelectorAll('[data-argument]')) {
      mark.textContent = escapeXml(form.elements[mark.dataset.argument].value);
    }
  };
  // A browser may restore earlier input.
  showEntered();
  form.addEventListener('input', showEntered);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const token = document.getElementById('try-token').value.trim();
    const headers = { 'content-type': 'text/xml; charset=utf-8' };
    if (token !== '') headers.authorization = `Bearer ${token}`;
    const body = block.querySelector('[data-request]').textContent;
    const began = performance.now();
    status.textContent = 'Sent …';
    try {
      const response = await fetch(location.pathname, { method: 'POST', headers, body, credentials: 'omit' });
      const text = await response.text();
      const ms = Math.max(1, Math.round(performance.now() - began));
      status.textContent = `HTTP ${response.status} ${response.statusText} after ${ms} ms, ${text.length} characters.`;
      status.className = response.ok ? 'good' : 'bad';
      answer.querySelector('pre').textContent =
        indentXml(text.slice(0, 100_000)) + (text.length > 100_000 ? ' …' : '');
      answer.hidden = false;
    } catch (error) {
      status.textContent = `No answer: ${error.message}`;
      status.className = 'bad';
      answer.hidden = true;
    }
  });
}

/** Escapes the apostrophe too: the text is also part of a quoted command. */
function escapeXml(text) {
  return text.replace(/[&<>'\r]/g, (character) => `&#${character.charCodeAt(0)};`);
}

function indentXml(xml) {
  let depth = 0;
  return xml
    .replace(/>\s*</g, '>\n<')
    .replace(/<([^\s/>]+)>\n<\/\1>/g, '<$1></$1>')
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
for (const part of document.querySelectorAll('[data-needs-script]')) part.hidden = false;
