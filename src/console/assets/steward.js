// Optional behaviour of the pages: copy a command, local times, live parts, follow a running job, try a SOAP operation. The pages work
// without it.

function offerCopy() {
  for (const block of document.querySelectorAll('[data-copy]')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'quiet';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(block.textContent ?? '');
      button.textContent = 'Copied';
      setTimeout(() => (button.textContent = 'Copy'), 2000);
    });
    block.after(button);
  }
}

if (navigator.clipboard) offerCopy();

/** The local time, and the one that the page shows. */
function nameLocalTimes() {
  for (const time of document.querySelectorAll('time[datetime]')) {
    const at = new Date(time.dateTime);
    const utc = `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
    time.title = `${at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' })} · ${utc}`;
  }
}

nameLocalTimes();

/** The clock of the reader may differ from the one of the server, whose time was `data-now` when the page was loaded. */
function updateRelativeTimes() {
  const aheadMs = Number(document.body.dataset.now) - performance.now();
  setInterval(() => {
    const now = aheadMs + performance.now();
    for (const time of document.querySelectorAll('time[data-ago]'))
      time.textContent = formatAgo(now - Date.parse(time.dateTime));
  }, 10_000);
}

if (document.querySelector('time[data-ago]')) updateRelativeTimes();

/** Changes only what differs, so that focus and scroll positions stay. */
function morph(from, to) {
  const isSame = from.nodeType === to.nodeType && from.nodeName === to.nodeName;
  if (!isSame) return from.replaceWith(to.cloneNode(true));
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return undefined;
  }
  // The reader decides which details are open.
  const isKept = (name) => name === 'open' || (name === 'title' && from.nodeName === 'TIME');
  for (const { name } of [...from.attributes])
    if (!to.hasAttribute(name) && !isKept(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes)
    if (from.getAttribute(name) !== value && !isKept(name)) from.setAttribute(name, value);
  return morphChildren(from, to);
}

/** A child with an id keeps its state when others are added before it. */
function morphChildren(from, to) {
  const known = new Map([...from.children].filter(({ id }) => id).map((child) => [child.id, child]));
  [...to.childNodes].forEach((fresh, index) => {
    const current = from.childNodes[index] ?? null;
    const same = fresh.id ? known.get(fresh.id) : current;
    if (!same) return from.insertBefore(fresh.cloneNode(true), current);
    if (same !== current) from.insertBefore(same, current);
    return morph(same, fresh);
  });
  while (from.childNodes.length > to.childNodes.length) from.lastChild.remove();
}

/** Reads the page again and updates the banner and the parts with `data-live`, whose value is the time between two reads in seconds. */
function refreshLiveParts() {
  const live = [...document.querySelectorAll('[data-live]')];
  if (live.length === 0) return;
  const parts = [document.getElementById('banner'), ...live];
  const waitMs = 1000 * Math.min(...live.map((part) => Number(part.dataset.live)));
  const again = () => setTimeout(refresh, waitMs);
  async function refresh() {
    if (document.hidden) return again();
    try {
      const response = await fetch(location.href, {
        headers: { accept: 'text/html' },
        cache: 'no-store',
        signal: AbortSignal.timeout(30_000),
      });
      // Without a session, every further read would fail.
      if (response.status === 401 || response.status === 403) return undefined;
      const page = new DOMParser().parseFromString(await response.text(), 'text/html');
      for (const part of parts) {
        const fresh = page.getElementById(part.id);
        if (fresh) morph(part, fresh);
      }
      nameLocalTimes();
    } catch {
      // The server is unreachable: the next read may succeed.
    }
    return again();
  }
  again();
}

refreshLiveParts();

function followJob(section) {
  const liveStatus = section.querySelector('[data-live-status]');
  const announcement = section.querySelector('[data-announcement]');
  const filter = section.dataset.filter?.split('\n');
  const title = document.title;
  const bar = section.querySelector('progress');
  const list = section.querySelector('[data-messages]');
  const cancel = section.querySelector('[data-until]');
  const figure = (name) => section.querySelector(`[data-figure="${name}"]`);
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const numberOf = (text) => (text ? Number(text) : null);
  let after = Number(section.dataset.after);
  let times = { elapsed: numberOf(section.dataset.run), remaining: numberOf(section.dataset.remaining) };
  let since = performance.now();
  let isOver = false;

  function tell(text) {
    if (liveStatus.textContent !== text) liveStatus.textContent = text;
  }

  /** Screen readers read every change of this text aloud. */
  function announce(text) {
    if (announcement.textContent !== text) announcement.textContent = text;
  }

  const earlierRunsMs = numberOf(section.dataset.elapsed) - numberOf(section.dataset.run);

  function showTimes() {
    const passed = performance.now() - since;
    figure('elapsed').textContent = formatDuration(earlierRunsMs + times.elapsed + passed);
    if (figure('run')) figure('run').textContent = formatDuration(times.elapsed + passed);
    const remaining = times.remaining === null ? null : times.remaining - passed;
    figure('remaining').textContent = formatRemaining(remaining);
  }

  function addMessage({ code, message, when }) {
    if (cancel?.dataset.until.split(' ').includes(String(code))) showCancel(false);
    // Another hop begins.
    else if (cancel && code === 2270) showCancel(true);
    if (filter && !filter.some((name) => message.includes(name))) return;
    const line = document.createElement('li');
    line.dataset.code = code;
    const time = document.createElement('time');
    time.dateTime = new Date(when).toISOString();
    time.textContent = `${time.dateTime.slice(0, 19).replace('T', ' ')} UTC`;
    const number = document.createElement('code');
    number.textContent = code;
    const text = document.createElement('span');
    text.textContent = message;
    line.append(time, ' ', number, ' ', text);
    list.append(line);
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
    if (figure('messages')) figure('messages').textContent = messageCount;
    figure('done').textContent = `${progress.done} of ${progress.total}`;
    figure('steps').textContent = `${progress.steps.done} of ${progress.steps.total}`;
    figure('percent').textContent = `${progress.percent} %`;
    bar.value = progress.percent;
    times = { elapsed: progress.elapsedMs, remaining: progress.remainingMs };
    since = performance.now();
    showTimes();
    document.title = `${progress.percent} % · ${title}`;
    tell('This page updates by itself.');
    const tenths = Math.floor(progress.percent / 10);
    if (tenths > 0) announce(`${tenths * 10} % reached.`);
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
    announce('Sign in again to follow the job.');
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
        tell('The connection is lost. Trying again …');
        announce('The connection is lost.');
        await pause(Math.min(1000 * 2 ** failures, 15_000));
      }
    }
    sessionStorage.setItem('ended', jobId);
    // The query belongs to an earlier step.
    location.replace(location.pathname);
  }

  offerNotification(liveStatus);
  tell('This page updates by itself.');
  setInterval(() => isOver || showTimes(), 1000);
  void follow();
}

/** Browsers ask the reader only after a click. */
function offerNotification(place) {
  if (!('Notification' in window) || Notification.permission !== 'default') return;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'quiet';
  button.textContent = 'Notify me at the end';
  button.addEventListener('click', async () => {
    const permission = await Notification.requestPermission();
    const line = document.createElement('p');
    line.className = 'hint';
    line.textContent =
      permission === 'granted'
        ? 'This browser notifies you when the job ends. Keep this page open.'
        : 'This browser blocks notifications of this site.';
    button.replaceWith(line);
  });
  place.after(button);
}

/** Announces the end of a job to a reader who has followed it, also from another tab. */
function announceEnd(section) {
  if (sessionStorage.getItem('ended') !== section.dataset.job) return;
  sessionStorage.removeItem('ended');
  const text = section.dataset.ended;
  const line = document.createElement('p');
  line.className = section.querySelector('#failure') ? 'problems' : 'result';
  line.setAttribute('role', 'status');
  document.querySelector('h1').before(line);
  // Screen readers read a change of a live region, not the text that it begins with.
  setTimeout(() => (line.textContent = text), 100);
  if (!document.hidden) return;
  const title = document.title;
  document.title = `● ${text}`;
  document.addEventListener('visibilitychange', () => (document.title = title), { once: true });
  if (window.Notification?.permission === 'granted') new Notification('Steward', { body: text });
}

for (const section of document.querySelectorAll('[data-ended]')) announceEnd(section);

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

/** This must match `formatAgo` in src/lib/format.ts. */
function formatAgo(ms) {
  return ms < 10_000 ? 'just now' : `${formatDuration(ms)} ago`;
}

function formatRemaining(ms) {
  if (ms === null) return 'not known yet';
  return ms < 10_000 ? 'a few seconds' : `about ${formatDuration(ms)}`;
}

for (const section of document.querySelectorAll('[data-follow]')) followJob(section);

/** Either the session or the entered token counts. */
function chooseSession(session) {
  const token = document.getElementById('try-token');
  const choose = () => (token.closest('.field').hidden = session.checked);
  session.addEventListener('change', choose);
  choose();
}

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
      status.textContent = `No answer: ${error.message}`;
      status.className = 'bad';
      answer.hidden = true;
    }
  });
}

/** Marks the service that the address names. */
function markName(block) {
  const name = new URLSearchParams(location.search).get('show');
  const [before, after] = block.textContent.split(`<Name>${escapeXml(name ?? '')}</Name>`);
  if (after === undefined) return;
  const mark = document.createElement('mark');
  mark.textContent = `<Name>${escapeXml(name)}</Name>`;
  block.replaceChildren(before, mark, block.textContent.slice(before.length + mark.textContent.length));
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
for (const part of document.querySelectorAll('[data-needs-script]')) part.hidden = false;
for (const session of document.querySelectorAll('#try-session')) chooseSession(session);
// A link with arguments shows the answer at once.
for (const form of document.querySelectorAll('form[data-try][data-asked]')) form.requestSubmit();
