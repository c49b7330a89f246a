// What the page does beyond its forms: passages and answer as a stream, keys, and a library that is watched while it
// is indexed. Without this file everything works by whole pages. Whatever is called html was rendered by our own server,
// which escapes all that comes from documents and models; words of an answer that is being written are set as text.
"use strict";

const root = document.documentElement.dataset.root || "";  // of the library, where there are several
const at = (name) => document.getElementById(name);

function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

function show(element, html) { element.replaceChildren(fragment(html)); }

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value;
    let end;
    while ((end = waiting.indexOf("\n\n")) >= 0) {
      const event = { name: "", data: "" };
      for (const line of waiting.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) event.name = line.slice(7);
        if (line.startsWith("data: ")) event.data = line.slice(6);
      }
      waiting = waiting.slice(end + 2);
      yield { name: event.name, data: JSON.parse(event.data) };
    }
  }
}

function watchForm(form) {
  const question = at("question"), stop = at("stop"), status = at("status"), thread = at("thread");
  const waiting = [];  // questions that were sent while an answer is written: they are asked after it
  let running = null, clock = 0;

  // All that is read out: searching, reading, writing, and how it ended. Places in the queue are only shown.
  function say(text) { if (status.textContent !== text) status.textContent = text; }

  function wait({ ahead, seconds }) {
    const usual = seconds ? `about ${Math.max(1, Math.round(seconds))} s` : "";
    clearInterval(clock);
    at("queue").hidden = false;
    at("queue").textContent = ahead ? [`${ahead} before you`, usual].filter(Boolean).join(", ") : "";
    if (ahead) return;
    const began = Date.now();
    clock = setInterval(() => {
      at("queue").textContent = `${Math.round((Date.now() - began) / 1000)} ${usual ? `of ${usual}` : "s"}`;
    }, 1000);
  }

  // While nothing is written yet, what is being read stands in the place of the answer.
  function read(growing, passages) {
    const names = new Set(passages.map((one) => [one.title, ...one.headings].at(-1) || one.location));
    growing.replaceChildren(...["Reading", ...[...names].slice(0, 4)].map((name) => {
      const line = document.createElement("span");
      line.className = "reading";
      line.textContent = name;
      return line;
    }));
  }

  async function goOn(conversation, anchor) {
    at("conversation").value = conversation || "";
    at("talk").hidden = !conversation;
    history.replaceState(null, "", conversation ? `${root}/?conversation=${conversation}#${anchor}` : `${root}/`);
    const choose = new URL(at("sources").href);  // what is chosen next belongs to this conversation
    choose.searchParams.set("conversation", conversation || "");
    at("sources").href = choose;
    const listed = await fetch(`${root}/history/beside?conversation=${conversation || ""}`).catch(() => null);
    if (listed && listed.ok) show(at("conversations"), await listed.text());
  }

  // The turn that is being answered: all that the answer needs gets its place at once, so that nothing moves later.
  function begin(fields, said) {
    const turn = at("new-turn").content.firstElementChild.cloneNode(true);
    turn.dataset.question = turn.querySelector(".asked").textContent = fields.get("question");
    turn.querySelector(".subject").hidden = !fields.get("new_subject") || !thread.childElementCount;
    turn.querySelector(".scope").hidden = !said;
    turn.querySelector(".scope").textContent = `Asked of: ${said}`;
    thread.querySelectorAll("details.evidence").forEach((one) => { one.open = false; });
    thread.append(turn);
    turn.scrollIntoView({ block: "start", behavior: "instant" });
    return turn;
  }

  // A question that is sent while an answer is written waits above the field, from where it can be taken back.
  function send(fields) {
    const one = { fields, said: at("sources").dataset.said };
    if (!running) { ask(one); return; }
    const item = document.createElement("li"), text = document.createElement("span"), back = document.createElement("button");
    text.textContent = fields.get("question");
    back.type = "button";
    back.textContent = "Take back";
    back.setAttribute("aria-label", `Take back: ${text.textContent}`);
    back.addEventListener("click", () => { unqueue(one); giveBack(text.textContent); question.focus(); });
    item.append(text, back);
    waiting.push(Object.assign(one, { item }));
    at("waiting").append(item);
    at("waiting").hidden = false;
  }

  function unqueue(one) {
    waiting.splice(waiting.indexOf(one), 1);
    one.item.remove();
    at("waiting").hidden = !waiting.length;
    return one;
  }

  function giveBack(text) { question.value = [question.value, text].filter(Boolean).join("\n"); }

  async function ask({ fields, said }) {
    const mine = running = new AbortController();
    if (at("conversation").value) fields.set("conversation", at("conversation").value);
    const last = thread.querySelector("article.turn:last-of-type");
    // A question that is asked again takes the place of the last one.
    if (last && !fields.get("new_subject") && last.dataset.question === fields.get("question")) last.remove();
    // Only the turns that are not shown yet are sent.
    if (fields.get("conversation")) fields.set("shown", thread.querySelectorAll("article.turn[data-kept]").length || "");
    if (at("start")) at("start").remove();
    document.querySelectorAll("section.found").forEach((one) => one.remove());
    at("start-title").className = "hidden";
    const turn = begin(fields, said), growing = turn.querySelector(".growing"), outcome = turn.querySelector(".outcome");
    const evidence = turn.querySelector(".evidence"), cards = turn.querySelector(".cards");
    let written = "";
    stop.hidden = false;
    at("search").hidden = true;
    say("Searching.");
    try {
      const response = await fetch(`${root}/ask`, {
        method: "POST", body: new URLSearchParams(fields), signal: mine.signal,
        headers: { Accept: "text/event-stream" },
      });
      if (!(response.headers.get("content-type") || "").startsWith("text/event-stream")) {
        throw new Error(await errorOf(response));
      }
      for await (const { name, data } of eventsOf(response)) {
        if (name === "earlier") turn.before(fragment(data.html));
        if (name === "queue") wait(data);
        if (name === "passages") {
          show(cards, data.html);
          evidence.hidden = data.count === 0;
          if (!written) read(growing, data.passages);
          say(`Reading: ${data.count} ${data.count === 1 ? "passage" : "passages"} found.`);
        }
        if (name === "reading" && !written) {
          const usual = data.seconds ? `, about ${Math.max(1, Math.round(data.seconds))} s` : "";
          const many = `${data.passages} ${data.passages === 1 ? "passage" : "passages"}`;
          growing.firstElementChild?.replaceChildren(`Reading ${many}${usual}`);
        }
        if (name === "token") {
          outcome.textContent = "Being written";
          growing.textContent = written = (data.replaces ? "" : written) + data.text;
        }
        if (name === "done") {
          show(turn.querySelector(".answer"), data.html);
          show(cards, data.cards);
          evidence.hidden = !data.cards.trim();
          cards.querySelectorAll(".card").forEach(toBest);
          if (data.notice) thread.replaceChildren(turn);
          if (data.conversation) {
            turn.id = data.anchor;
            turn.dataset.kept = "";
          }
          say({ answered: "The answer is complete.", quoted: "Not sure; the documents are quoted.",
            refused: "The documents do not answer this.",
            left: "Code alone does not answer this." }[data.answer.outcome]);
          if (data.conversation || data.notice) goOn(data.conversation, data.anchor);
        }
        if (name === "error") throw new Error(data.message);
      }
    } catch (error) {
      // What fetch says of a server that has gone is different in every browser.
      const gone = error instanceof TypeError ? "The server has gone; your question is still here." : error.message;
      const stopped = error.name === "AbortError";
      say(stopped ? "Stopped." : gone);
      growing.removeAttribute("aria-busy");
      outcome.textContent = "Not finished";
      growing.textContent = written;
      evidence.hidden = !cards.hasChildNodes();
      if (!stopped || !waiting.length) giveBack(fields.get("question"));
      // What has failed would fail again: what waits comes back too, so that nothing typed is lost.
      if (!stopped) while (waiting.length) giveBack(unqueue(waiting[0]).fields.get("question"));
    }
    running = null;
    clearInterval(clock);
    at("queue").hidden = true;
    stop.hidden = true;
    at("search").hidden = false;
    if (waiting.length) ask(unqueue(waiting[0]));
  }

  async function errorOf(response) {
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const notice = page.querySelector("p.notice:last-of-type");
    return (notice || page.body).textContent.trim() || `The server said ${response.status}.`;
  }

  form.addEventListener("submit", (event) => {
    if (event.submitter && event.submitter.value === "search") return;
    event.preventDefault();
    if (!question.value.trim()) return;
    const fields = new FormData(form);
    question.value = "";
    at("new_subject").checked = false;
    send(fields);
  });
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && running && !document.querySelector("dialog[open]")) running.abort();
  });
  stop.addEventListener("click", () => { if (running) running.abort(); question.focus(); });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form.anyway, form.kinds, form.again, form.suggest")) return;
    event.preventDefault();
    send(new FormData(event.target, event.submitter));
    question.focus();  // the button that was pressed goes with the answer
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.edit");
    if (!link) return;
    event.preventDefault();
    question.value = link.dataset.question;
    question.focus();
  });
}

// Documents are chosen in a dialog over the page; its form is that of the page that does without it.
function watchSources() {
  const dialog = at("choose");

  function count() {
    const ticked = new FormData(at("choice")).getAll("source"), all = Number(at("choice").dataset.total);
    const boxes = [...dialog.querySelectorAll("ul.tree input")].filter((box) => box.checked && ticked.includes(box.value));
    const documents = boxes.reduce((sum, box) => {
      const counted = box.closest("li").querySelector(":scope > details > summary .count");
      return sum + (counted ? Number(counted.textContent.replaceAll(",", "")) : 1);
    }, 0);
    const more = ticked.length > boxes.length ? ` and ${ticked.length - boxes.length} chosen before` : "";
    at("chosen").textContent = ticked.length
      ? `Only what is ticked is asked: ${documents.toLocaleString("en")} of ${all.toLocaleString("en")} documents${more}.`
      : `Nothing is ticked: all ${all.toLocaleString("en")} documents are asked.`;
  }

  async function load(address) {
    const response = await fetch(`${address}&part=1`).catch(() => null);
    if (!response || !response.ok) { location.href = address; return false; }
    show(dialog, await response.text());
    dialog.querySelectorAll("ul.tree").forEach(watchTree);
    count();
    return true;
  }

  async function use(fields) {
    if (at("conversation")) fields.set("conversation", at("conversation").value);
    const back = fields.get("back") || "/", address = `${root}${back}?${fields}`;
    const response = back === "/diff" || back === "/brief" ? null : await fetch(`${root}/scope?${fields}`).catch(() => null);
    if (!response || !response.ok) { location.href = address; return; }
    show(at("scope"), await response.text());
    history.replaceState(null, "", address);  // a page that is loaded again still has the choice
    dialog.close();
    (at("question") || at("sources")).focus();
  }

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("#sources, #scope a.all, dialog a.everything");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (link.id !== "sources") use(new URL(link.href).searchParams);
    else if (await load(link.href)) dialog.showModal();
  });
  dialog.addEventListener("change", count);
  dialog.addEventListener("click", ({ target }) => { if (target === dialog) dialog.close(); });  // beside what it shows
  dialog.addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(event.target));
    for (const name of [...fields.keys()]) if (!fields.get(name)) fields.delete(name);
    if (!event.submitter || event.submitter.id !== "look") return use(fields);
    await load(`${root}/sources?${fields}`);
    return at("find").focus();
  });
}

// Ctrl-K opens documents and conversations by their names, on every page.
function watchNames() {
  const dialog = at("open-anything"), wanted = dialog.querySelector("input"), found = dialog.querySelector(".named");
  let last = 0;

  async function look() {
    const mine = ++last;
    const response = await fetch(`${root}/open?part=1&q=${encodeURIComponent(wanted.value)}`).catch(() => null);
    if (response && response.ok && mine === last) show(found, await response.text());
  }

  function open() {
    if (dialog.open) return;
    dialog.showModal();
    wanted.select();
    look();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); open(); }
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("a.open-anything")) return;
    event.preventDefault();
    open();
  });
  wanted.addEventListener("input", look);
  dialog.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = found.querySelector("a");
    if (first) location.href = first.href;
  });
  dialog.addEventListener("keydown", (event) => {
    // In a field to search in, the key alone would only empty it; and what is written goes on.
    if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); dialog.close(); }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const all = [wanted, ...found.querySelectorAll("a")], place = all.indexOf(document.activeElement);
    all[(place + (event.key === "ArrowDown" ? 1 : all.length - 1)) % all.length].focus();
  });
  dialog.addEventListener("click", ({ target }) => { if (target === dialog) dialog.close(); });
}

// What can be done with a conversation opens below its name in the list, and closes again.
function watchMenus() {
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a.more-of");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const item = link.closest("li"), open = item.querySelector(".menu");
    if (open) { open.remove(); link.setAttribute("aria-expanded", "false"); return; }
    const response = await fetch(`${link.href}&part=1`).catch(() => null);
    if (!response || !response.ok) { location.href = link.href; return; }
    const menu = document.createElement("div");
    menu.className = "menu";
    show(menu, await response.text());
    item.append(menu);
    link.setAttribute("aria-expanded", "true");
    menu.querySelector("input:not([type=hidden])").focus();
  });
}

function isTyping() {
  const focused = document.activeElement;
  return focused && (focused.matches("input:not([type=checkbox]):not([type=radio]), textarea, select") || !!document.querySelector("dialog[open]"));
}

// `/` leads to the field that a page has for words; arrows walk the passages of an answer.
function watchKeys() {
  document.addEventListener("keydown", (event) => {
    if (isTyping() || event.ctrlKey || event.metaKey || event.altKey) return;
    const field = at("question") || document.querySelector("main input[type=search], main input[name=q]");
    if (event.key === "/" && field) { event.preventDefault(); field.focus(); }
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const card = document.activeElement.closest(".card");
    const sideways = event.key === "ArrowRight" || event.key === "ArrowLeft";
    if (!step || !(sideways || document.activeElement === card)) return;
    const within = card ? card.closest(".cards") : [...document.querySelectorAll(".cards")].at(-1);
    const all = within ? [...within.querySelectorAll(".card")] : [];
    const next = card ? all[all.indexOf(card) + step] : all.at(step > 0 ? 0 : -1);
    if (!next) return;
    event.preventDefault();
    lead(next);
  });
}

// Show a passage and give it the focus, so that the next key goes on from there.
function lead(card) {
  for (let one = card.parentElement; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  card.scrollIntoView({ block: "nearest" });
  card.focus({ preventScroll: true });
  toBest(card);
}

// Move the text of a card, which shows a part of it, to the sentence that fits best.
function toBest(card) {
  const mark = card.querySelector(".passage mark.best"), text = card.querySelector(".passage");
  if (mark) text.scrollTop += mark.getBoundingClientRect().top - text.getBoundingClientRect().top - text.clientHeight / 3;
}

function watchCopies() {
  // Without a clipboard, which browsers give only over TLS and on this machine, the button stays hidden.
  if (!navigator.clipboard) return;
  const reveal = () => document.querySelectorAll("button.copy[hidden], button.link[hidden]").forEach((button) => { button.hidden = false; });
  new MutationObserver(reveal).observe(document.body, { childList: true, subtree: true });
  reveal();
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy, button.link");
    if (!button) return;
    if (button.classList.contains("link")) {
      await navigator.clipboard.writeText(button.previousElementSibling.href);
      button.firstChild.textContent = "Copied";
      return;
    }
    const said = button.closest(".turn").querySelectorAll(".prose, .quote");
    await navigator.clipboard.writeText(Array.from(said, (one) => one.innerText.trim()).join("\n\n"));
    button.textContent = "Copied";
  });
}

// A form that takes a mark back.
function undoOf(form) {
  const undo = form.cloneNode(true), [button, ...others] = undo.querySelectorAll("button");
  undo.setAttribute("aria-label", "Take the mark back");
  others.forEach((one) => one.remove());
  Object.assign(button, { className: "", title: "", name: "undo", value: "1", textContent: "Undo" });
  return undo;
}

// What is said of an answer is kept without leaving the page.
function watchRatings() {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form.rate")) return;
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(form)), pressed = event.submitter, said = document.createElement("p");
    fields.set(pressed.name, pressed.value);
    said.className = "facts";
    said.tabIndex = -1;
    const response = await fetch(form.action, { method: "POST", body: fields, headers: { Accept: "application/json" } })
      .catch(() => null);
    const told = response && await response.json();
    const what = { wrong: "Marked as wrong, and kept as a question to look at.", chunk: "Marked as right, and kept for evaluation." };
    said.textContent = !response ? "The server has gone." : !response.ok ? told.error
      : `${what[pressed.name] || "No longer marked."} ${told.gate || ""}`;
    if (response && response.ok && pressed.name !== "undo") said.append(undoOf(form));
    form.replaceWith(said);
    said.focus();
  });
}

function watchCitations() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.cite");
    const card = link && document.querySelector(link.getAttribute("href"));
    if (!card) return;
    event.preventDefault();
    history.replaceState(null, "", link.getAttribute("href"));
    document.querySelectorAll(".card.led").forEach((one) => one.classList.remove("led"));
    card.classList.add("led");
    const page = card.querySelector("details.page-of");
    if (page) page.open = true;
    lead(card);
  });
}

// A part of the page that changes while something runs: looked at often then, seldom or, without `idle`, never after.
async function watch(section, address, idle) {
  let running = section.dataset.running === "yes", last = "";
  while (running || idle) {
    await new Promise((done) => setTimeout(done, document.hidden ? 60000 : running ? 3000 : 15000));
    const response = await fetch(address).catch(() => null);
    if (!response || !response.ok) continue;
    running = response.headers.get("x-local-rag-running") === "yes";
    const html = await response.text();
    if (section.querySelector("details[open]")) running = true;  // somebody reads or writes there: later
    else if (html !== last) show(section, last = html);  // what is as before is not read out again
  }
}

// Files that are dropped anywhere on the page are chosen; the button still sends them.
function watchDrop(form, files) {
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      if (![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      form.classList.toggle("over", name === "dragover");
      if (name !== "drop") return;
      files.files = event.dataTransfer.files;
      if (form.hidden) form.submit();  // on the page of the library, where nothing else is to be chosen
    });
  }
}

// A link that came through the form to log in has lost what follows its #.
if (at("passage") && !location.hash && /[?&](at|chunk)=/.test(location.search)) at("passage").scrollIntoView();
if (at("ask")) watchForm(at("ask"));
if (at("sources")) watchSources();
if (at("open-anything")) watchNames();
if (at("conversations")) watchMenus();
watchKeys();
watchCitations();
watchCopies();
watchRatings();
document.querySelectorAll("section[data-running]").forEach((one) => watch(one, one.dataset.address, "idle" in one.dataset));
if (at("upload")) watchDrop(at("upload"), at("files"));

// --- Library, documents, questions of a file, people ---

// A tree of check boxes: a folder stands for all that is in it, and is half chosen where a part of that is.
function watchTree(tree) {
  const boxes = (place) => Array.from(place.querySelectorAll("input[type=checkbox]"));
  const inner = (box) => boxes(box.closest("li")).slice(1);
  const count = () => {
    for (const box of boxes(tree).reverse()) {
      const below = inner(box);
      if (!below.length) continue;
      box.indeterminate = !box.checked && below.some((one) => one.checked || one.indeterminate);
    }
  };
  const above = (box) => {
    const item = box.closest("ul").closest("li");
    return item && tree.contains(item) ? item.querySelector("input[type=checkbox]") : null;
  };
  for (const box of boxes(tree)) if (box.checked) inner(box).forEach((one) => { one.checked = true; });
  count();
  tree.addEventListener("change", ({ target }) => {
    inner(target).forEach((one) => { one.checked = target.checked; });
    // All that is in a folder, where all of it is there to be ticked, is the folder.
    for (let box = target.checked ? above(target) : null; box; box = above(box)) {
      const items = [...box.closest("li").querySelector("ul").children];
      box.checked ||= items.every((item) => item.querySelector("input") && item.querySelector("input").checked);
    }
    for (let box = target.checked ? null : above(target); box; box = above(box)) box.checked = false;
    count();
  });
  // Only the outermost ones are sent: what is in a chosen folder is chosen with it. What is not seen stays chosen.
  tree.closest("form").addEventListener("formdata", ({ formData }) => {
    const chosen = boxes(tree).filter((box) => box.checked);
    new Set(boxes(tree).map((box) => box.name)).forEach((name) => {
      formData.delete(name);
      for (const unseen of tree.closest("form").querySelectorAll("input[type=hidden]")) {
        if (unseen.name === name) formData.append(name, unseen.value);
      }
    });
    for (const box of chosen) {
      const outer = above(box);
      if (!outer || !outer.checked) formData.append(box.name, box.value);
    }
  });
}

document.querySelectorAll("ul.tree").forEach(watchTree);

// Documents to be removed: all of a page at once, and how many are chosen.
function watchBulk(form) {
  const all = at("all-of-page"), said = at("chosen-count"), buttons = form.querySelectorAll(".bulk-actions button:not([name])");
  const boxes = Array.from(form.querySelectorAll("input[name=document]"));
  const count = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
    said.textContent = chosen ? `${chosen} chosen` : "";
    buttons.forEach((button) => { button.disabled = !chosen; });
  };
  all.hidden = false;
  all.addEventListener("change", () => { boxes.forEach((box) => { box.checked = all.checked; }); count(); });
  form.addEventListener("change", ({ target }) => { if (target !== all) count(); });
  count();
}

if (at("all-of-page")) watchBulk(document.querySelector("form.bulk"));

// What a person would see is counted again with each change; whoever ticks something does not mean everything.
function watchSeen(form, seen) {
  let latest = 0;
  form.addEventListener("change", async ({ target }) => {
    if (target.name === "source" || target.name === "in" || target.name === "tag") form.elements.sees.value = "chosen";
    const mine = ++latest;
    const response = await fetch(seen.dataset.address, { method: "POST", body: new URLSearchParams(new FormData(form)) })
      .catch(() => null);
    if (response && response.ok && mine === latest) show(seen, await response.text());
  });
}

if (at("seen")) watchSeen(at("seen").closest("form"), at("seen"));
