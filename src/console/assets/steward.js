// Optional behaviour of the pages: mark forms that are being sent, change the theme in place, copy a command, show a
// password, local times, live parts and the connection. The pages work without it.

/** A second click must not send a form again. */
function markSentForms() {
  const sent = new Map();
  document.addEventListener('submit', (event) => {
    const { target: form, submitter: button } = event;
    const method = button?.getAttribute('formmethod') ?? form.method;
    if (event.defaultPrevented || method !== 'post') return;
    if (sent.has(form)) return event.preventDefault();
    sent.set(form, { button, label: button?.textContent });
    if (!button) return undefined;
    button.textContent = 'Sending …';
    // The browser collects the fields first.
    setTimeout(() => (button.disabled = true));
    return undefined;
  });
  // The reader may come back to the page as it was.
  addEventListener('pageshow', () => {
    for (const { button, label } of sent.values())
      if (button) Object.assign(button, { disabled: false, textContent: label });
    sent.clear();
  });
}

/** Keeps the page, which may have a form with input. */
function changeThemeInPlace(form) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const { value } = event.submitter;
    const body = new URLSearchParams({ theme: value });
    const answer = await fetch(form.action, { method: 'POST', body, redirect: 'manual' }).catch(
      () => undefined,
    );
    if (answer?.type !== 'opaqueredirect') return;
    document.querySelector('meta[name="color-scheme"]').content = value === 'system' ? 'light dark' : value;
    for (const button of form.querySelectorAll('button')) button.ariaPressed = String(button.value === value);
  });
}

for (const form of document.querySelectorAll('form.theme')) changeThemeInPlace(form);
markSentForms();

/** A button that only the script needs. */
function addButton(place, label, onClick) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = place.dataset.copy === 'primary' ? 'primary' : 'quiet';
  button.textContent = label;
  button.addEventListener('click', () => onClick(button));
  place.after(button);
  return button;
}

function offerCopy(block) {
  addButton(block, 'Copy', async (button) => {
    await navigator.clipboard.writeText(block.textContent ?? '');
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  });
}

if (navigator.clipboard) document.querySelectorAll('[data-copy]').forEach(offerCopy);

function offerReveal(input) {
  const reveal = addButton(input, 'Show', () => {
    const isHidden = input.type === 'password';
    input.type = isHidden ? 'text' : 'password';
    reveal.textContent = isHidden ? 'Hide' : 'Show';
  });
  reveal.classList.add('reveal');
}

document.querySelectorAll('input[type="password"]').forEach(offerReveal);

/** Such as `2026-11-18 08:30:00 CET`: the Swedish form is the one of ISO 8601. */
const localTime = new Intl.DateTimeFormat('sv', {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
});

/** The reader enters a time in the zone of the browser, which the label names. The form sends milliseconds. */
function enterLocalTime(zone) {
  const input = zone.closest('label').control;
  const at = new Date(`${input.value}Z`);
  if (input.value !== '')
    input.value = new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  const isShort = zone.dataset.zone === 'short';
  zone.textContent = isShort ? localTime.format().slice(20) : localTime.resolvedOptions().timeZone;
  input.form.addEventListener('formdata', ({ formData }) => {
    if (input.value !== '') formData.set(input.name, new Date(input.value).getTime());
  });
}

document.querySelectorAll('[data-zone]').forEach(enterLocalTime);

/** A time that is entered is chosen, and another choice removes it. */
function keepChoice(field) {
  const choice = field.querySelector('select');
  const time = field.querySelector('input');
  const start = field.closest('form').querySelector('[data-start]');
  time.addEventListener('input', () => (choice.value = 'at'));
  choice.addEventListener('input', () => choice.value === 'at' || (time.value = ''));
  if (!start) return;
  const nameStart = () => {
    const at = choice.value === 'at' ? new Date(time.value) : new Date(Number(choice.value));
    const [weekday, month, day, , clock = ''] = at.toString().split(' ');
    const when = clock ? `for ${weekday} ${Number(day)} ${month}, ${clock.slice(0, 5)}` : 'the upgrade';
    start.textContent = choice.value === '' ? 'Start the upgrade' : `Schedule ${when}`;
  };
  nameStart();
  field.addEventListener('input', nameStart);
}

document.querySelectorAll('.when').forEach(keepChoice);

for (const input of document.querySelectorAll('[data-own-zone]'))
  input.value = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The link leads to the days of the zone of the reader. */
function askForLocalDays(link) {
  const url = new URL(link.href);
  const asked = new URLSearchParams(location.search);
  const now = new Date();
  const days = link.dataset.days.split(' ').map(Number);
  const midnights = days.map((day) => new Date(now.getFullYear(), now.getMonth(), now.getDate() + day));
  const [from, to] = midnights.map((at) => String(at.getTime()));
  url.searchParams.set('from', from);
  url.searchParams.set('to', to);
  link.href = url;
  if (asked.get('from') === from && asked.get('to') === to) link.ariaCurrent = 'true';
}

document.querySelectorAll('[data-days]').forEach(askForLocalDays);

/** Shows times in the zone of the reader. Their title has the one of the server too. */
function showLocalTimes(root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const at = new Date(time.dateTime);
    const local = localTime.format(at);
    const utc = `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
    const { ago, clock } = time.dataset;
    time.title = ago === undefined && clock === undefined ? utc : `${local} · ${utc}`;
    if (ago === undefined) time.textContent = clock === undefined ? local : local.slice(11, 19);
    else time.textContent = formatAgo(at, aheadMs + performance.now());
  }
}

// Options contain no elements.
for (const option of document.querySelectorAll('option'))
  option.textContent = option.textContent.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/, (utc) =>
    localTime.format(new Date(utc.replace(' UTC', 'Z').replace(' ', 'T'))),
  );

/** The clock of the reader may differ from the one of the server, whose time was `data-now` when it sent the page. */
const aheadOf = (page) => Number(page.body.dataset.now) - performance.now();
let aheadMs = aheadOf(document);

showLocalTimes(document);

setInterval(() => {
  if (document.body.dataset.connection) return;
  const now = aheadMs + performance.now();
  for (const time of document.querySelectorAll('time[data-ago]'))
    time.textContent = formatAgo(Date.parse(time.dateTime), now);
}, 10_000);

/** Changes only what differs, so that focus and scroll positions stay. */
function morph(from, to) {
  const isSame = from.nodeType === to.nodeType && from.nodeName === to.nodeName;
  if (!isSame) return from.replaceWith(to.cloneNode(true));
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return undefined;
  }
  // The reader decides which details are open.
  for (const { name } of [...from.attributes])
    if (!to.hasAttribute(name) && name !== 'open') from.removeAttribute(name);
  for (const { name, value } of to.attributes)
    if (from.getAttribute(name) !== value && name !== 'open') from.setAttribute(name, value);
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

/** What the title says while the page is not fresh. */
const troubles = { unsure: 'Offline', lost: 'Offline', ended: 'Signed out', database: 'No database' };

/** The title for a reader who has not seen the end of the job yet. */
let news;

/**
 * Reads the page again and updates the banner, the navigation and the parts with `data-live`, whose value is the time
 * between two reads in seconds; 0 means seldom, and after a filter. A page without such parts reads only its frame,
 * and seldom. The server renders all of it. While no answer arrives, the connection strip says so, and nothing on the page
 * looks fresh.
 */
function keepLive() {
  const live = [...document.querySelectorAll('[data-live]')];
  const frame = document.querySelectorAll('#navigation, #banner');
  if (live.length === 0 && !document.getElementById('navigation')) return;
  const parts = [...frame, ...live];
  const strip = document.getElementById('connection');
  const mark = document.getElementById('fresh');
  const icon = document.querySelector('link[rel="icon"]');
  const usualIcon = icon.getAttribute('href');
  // The page of an error, or of a refused form, is as fresh as it was.
  const openedWith = performance.getEntriesByType('navigation')[0]?.responseStatus;
  const job = document.querySelector('[data-running]')?.dataset.running;
  let title = document.title;
  let hasInput = false;
  let lastAnswer = new Date();
  let failures = 0;
  // Of the last answer, to which the server answers 304 while nothing has changed.
  let tag = '';
  // Of the last answer. A page that changes all the time is read less often the larger it is.
  let size = 0;
  let timer;
  // The read that counts. A newer one, for example with another filter, ends it.
  let reading;

  function showTitle(state) {
    const percent = document.querySelector('[data-percent]')?.dataset.percent;
    const problems = [...document.querySelectorAll('[data-problems]')].at(-1)?.dataset.problems ?? '0';
    const usual = `${problems === '0' ? '' : `(${problems}) `}${percent ? `${percent} % · ` : ''}${title}`;
    document.title = state ? `● ${troubles[state]} · ${title}` : (news ?? usual);
    const name = state ? 'offline' : problems === '0' ? undefined : 'attention';
    icon.href = icon.dataset[name] ?? usualIcon;
  }

  /** `state` is undefined while all is well. Otherwise it is the reason why the page is not fresh. */
  function showConnection(state, ...content) {
    showTitle(state);
    mark.hidden = live.length === 0 || Boolean(state);
    mark.title = `Updated at ${lastAnswer.toLocaleTimeString()}`;
    // Screen readers read every change of the strip aloud.
    if (state === document.body.dataset.connection) return;
    if (state) document.body.dataset.connection = state;
    else delete document.body.dataset.connection;
    strip.replaceChildren(...content);
    strip.hidden = !state;
  }

  function showLost(reason) {
    failures += 1;
    tag = '';
    const time = lastAnswer.toLocaleTimeString();
    showConnection(failures < 3 ? 'unsure' : 'lost', `${reason} since ${time}. Trying again …`);
  }

  function showEnded() {
    const link = document.createElement('a');
    link.href = location.pathname + location.search;
    link.textContent = 'Sign in';
    tag = '';
    showConnection('ended', 'Your session has ended. ', link, ' to go on.');
  }

  const isReadOnly = () => document.querySelector('#banner .strip') !== null;

  /** Read-only mode has disabled buttons outside of the parts. A reload would lose input, or send a form again. */
  function endReadOnly() {
    if (!hasInput && !(openedWith >= 400)) return location.reload();
    for (const button of document.querySelectorAll('main form button:disabled')) {
      button.disabled = false;
      button.parentElement.querySelector('.hint')?.remove();
    }
    return undefined;
  }

  function show(page) {
    const running = page.querySelector('[data-running]')?.dataset.running;
    if (job !== running) {
      if (!job) return location.reload();
      sessionStorage.setItem('ended', job);
      // The query belongs to an earlier step.
      return location.replace(location.pathname);
    }
    const wasReadOnly = isReadOnly();
    for (const part of parts) {
      const fresh = page.getElementById(part.id);
      if (fresh) morph(part, fresh);
    }
    if (wasReadOnly && !isReadOnly() && document.querySelector('main :disabled')) return endReadOnly();
    if (document.getElementById('follow')?.checked) document.querySelector('.messages').scrollTop = 0;
    if (live.length > 0) ({ title } = page);
    return undefined;
  }

  async function showAnswer(response) {
    const text = await response.text();
    // The first answer shows nothing new.
    size = tag === '' ? 0 : text.length;
    const page = new DOMParser().parseFromString(text, 'text/html');
    const state = page.body.dataset.connection;
    if (!response.ok && !state && response.status !== openedWith)
      return showLost(`The server answers with an error (${response.status})`);
    failures = 0;
    lastAnswer = new Date();
    tag = response.headers.get('etag') ?? '';
    aheadMs = aheadOf(page);
    showLocalTimes(page);
    if (response.ok) show(page);
    return showConnection(state, ...page.getElementById('connection').childNodes);
  }

  async function refresh() {
    clearTimeout(timer);
    reading?.abort();
    const own = new AbortController();
    reading = own;
    setTimeout(() => own.abort(), 10_000);
    try {
      const poll = live.length > 0 ? 'page' : 'frame';
      const response = await fetch(location.href, {
        headers: { accept: 'text/html', 'steward-poll': poll, 'if-none-match': tag },
        cache: 'no-store',
        signal: own.signal,
      });
      const { ok, status } = response;
      if ((status === 401 || status === 403) && status !== openedWith) {
        // The reader may sign in again in another tab.
        timer = setTimeout(refresh, 5000);
        return showEnded();
      }
      // The forms of the page need the token of the new session. A page that failed to open has no input.
      const hasFailed = openedWith >= 500 && !document.querySelector('main form');
      if (ok && (hasFailed || document.body.dataset.connection === 'ended')) return location.reload();
      if (status === 304) {
        size = 0;
        lastAnswer = new Date();
        showConnection(document.body.dataset.connection);
      } else await showAnswer(response);
    } catch {
      if (own !== reading) return undefined;
      showLost('Not connected');
    }
    return wait();
  }

  function wait() {
    // A part may ask for another time after each read.
    const waits = live.map((part) => 1000 * Number(part.dataset.live)).filter((ms) => ms > 0);
    const isWell = !document.body.dataset.connection;
    const perSecond = job ? 32_000 : 2000;
    const least = Math.max(Math.min(...waits), (1000 * size) / perSecond);
    const usual = isWell ? Math.min(30_000, least) : Math.min(2000 * (failures || 2), 10_000);
    // A job is followed in the background too, because the reader may want to be notified.
    timer = setTimeout(refresh, document.hidden && !job ? 60_000 : usual);
  }

  function showFiltered(event, query) {
    event.preventDefault();
    history.replaceState(null, '', query);
    tag = '';
    void refresh();
  }

  showConnection(document.body.dataset.connection);
  wait();
  document.addEventListener('visibilitychange', () => document.hidden || refresh());
  document.addEventListener('input', () => (hasInput = true));
  addEventListener('focus', () => document.body.dataset.connection && refresh());
  document.addEventListener('change', ({ target }) => {
    if (target.closest('[data-in-place]')) target.form?.requestSubmit();
  });
  document.addEventListener('submit', (event) => {
    const form = event.target.closest('[data-in-place] form');
    if (form) showFiltered(event, `?${new URLSearchParams(new FormData(form))}`);
  });
  document.addEventListener('click', (event) => {
    const link = event.target.closest('[data-in-place] a[href^="?"]');
    const opensElsewhere = event.ctrlKey || event.metaKey || event.shiftKey;
    if (link && !opensElsewhere) showFiltered(event, link.getAttribute('href'));
  });
  // The newest message is at the end. A reader who scrolls back reads earlier ones.
  document.addEventListener(
    'scroll',
    ({ target }) => {
      const follow = document.getElementById('follow');
      if (follow && target.matches?.('.messages')) follow.checked = target.scrollTop > -20;
    },
    true,
  );
}

keepLive();

/** The form contains the boxes of all rows. */
document.addEventListener('change', ({ target }) => {
  if (!target.matches('[data-select-all]')) return;
  for (const box of target.form.elements) if (box.type === 'checkbox') box.checked = target.checked;
});

/** The arrow keys move through the menu of a row. */
document.addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const menu = event.target.closest('.row-menu') ?? event.target.popoverTargetElement;
  if (!step || !menu?.matches('.row-menu:popover-open')) return;
  event.preventDefault();
  const items = [...menu.querySelectorAll('a, button:enabled')];
  const at = items.indexOf(event.target);
  items.at(at < 0 && step < 0 ? -1 : (at + step) % items.length)?.focus();
});

/** After a wrong password, the address is the one that the reader has asked for. */
function restoreAddress({ value }) {
  if (/^\/(?![/\\])/.test(value)) history.replaceState(null, '', value);
}

for (const next of document.querySelectorAll('.sign-in [name="next"]')) restoreAddress(next);

/** The links that filter a list keep what the reader has entered beside them. */
document.addEventListener('click', ({ target }) => {
  const link = target.closest('.toolbar .chips a');
  const url = link && new URL(link.href);
  for (const { name, value } of link?.closest('.toolbar').querySelectorAll('[type="search"], select') ?? [])
    url.searchParams.set(name, value);
  if (link) link.href = url;
});

const isTyping = ({ target }) => target.closest('input:not([type="checkbox"]), textarea, select');

/** The next or the previous row of a list. */
function moveToRow(step) {
  const rows = [...document.querySelectorAll('.list tbody tr, main :is(.findings, .recent) li')];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  rows[at < 0 ? 0 : at + step]?.querySelector('a, button')?.focus();
}

/** `j`, `k` and `?`, which shows all keys. */
document.addEventListener('keydown', (event) => {
  const { key, ctrlKey, metaKey, altKey } = event;
  if (isTyping(event) || ctrlKey || metaKey || altKey) return;
  if (key === 'j' || key === 'k') moveToRow(key === 'j' ? 1 : -1);
  if (key === '?') document.getElementById('shortcuts')?.togglePopover();
});

/** `/` and Ctrl-K lead to the search. */
function offerSearchKeys(input) {
  document.addEventListener('keydown', (event) => {
    const isAsked =
      (event.key === '/' && !isTyping(event)) || (event.key === 'k' && (event.ctrlKey || event.metaKey));
    if (!isAsked) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  input.addEventListener('keydown', ({ key }) => key === 'Escape' && input.value === '' && input.blur());
}

for (const input of document.querySelectorAll('#everywhere')) offerSearchKeys(input);

/** Browsers ask the reader only after a click. */
function offerNotification(place) {
  if (!('Notification' in window) || Notification.permission !== 'default') return;
  addButton(place.firstElementChild, 'Notify me at the end', async (button) => {
    const permission = await Notification.requestPermission();
    const line = document.createElement('span');
    line.textContent =
      permission === 'granted'
        ? 'This browser notifies you when the job ends. Keep this page open.'
        : 'This browser blocks notifications of this site.';
    button.replaceWith(line);
  });
}

for (const place of document.querySelectorAll('[data-notify]')) offerNotification(place);

/** Announces the end of a job to a reader who has followed it, also from another tab. */
function announceEnd(section) {
  if (sessionStorage.getItem('ended') !== section.dataset.job) return;
  sessionStorage.removeItem('ended');
  const text = section.dataset.ended;
  const line = document.createElement('p');
  // A page that shows the failure does not show it twice.
  line.className = section.querySelector('#failure') ? 'unseen' : 'result';
  line.setAttribute('role', 'status');
  document.querySelector('main').prepend(line);
  // Screen readers read a change of a live region, not the text that it begins with.
  setTimeout(() => (line.textContent = text), 100);
  if (!document.hidden) return;
  const title = document.title;
  news = `● ${text}`;
  document.title = news;
  const show = () => {
    news = undefined;
    document.title = title;
  };
  document.addEventListener('visibilitychange', show, { once: true });
  if (window.Notification?.permission === 'granted') new Notification('Steward', { body: text });
}

for (const section of document.querySelectorAll('[data-ended]')) announceEnd(section);

/** This must match `formatAgo` in src/lib/format.ts, in the zone of the reader. */
function formatAgo(at, now) {
  const ms = now - at;
  if (ms < 10_000) return 'just now';
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s ago`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ago`;
  const [, month, day, year, time] = new Date(at).toString().split(' ');
  if (ms < 86_400_000) return time.slice(0, 5);
  return `${Number(day)} ${month} ${ms < 180 * 86_400_000 ? time.slice(0, 5) : year}`;
}
