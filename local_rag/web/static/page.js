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
  const question = at("question"), stop = at("stop"), status = at("status"), body = at("answer-body");
  let running = null;

  // All that is read out: searching, reading, writing, and how it ended. Places in the queue are only shown.
  function say(text) { if (status.textContent !== text) status.textContent = text; }

  function wait(ahead) {
    at("queue").hidden = !ahead;
    at("queue").textContent = ahead ? `Waiting: ${ahead} before you` : "";
  }

  function goOn(conversation) {
    at("conversation").value = conversation || "";
    at("new_subject").checked = false;
    at("talk").hidden = !conversation;
    at("export").hidden = false;
    at("export").href = `${root}/history/${conversation}.html`;
    history.replaceState(null, "", conversation ? `${root}/?conversation=${conversation}` : `${root}/`);
  }

  async function ask(fields) {
    if (running) running.abort();
    // Only the turns that are not shown yet are sent.
    if (fields.get("conversation")) fields.set("shown", at("thread").querySelectorAll("details.turn").length || "");
    const mine = running = new AbortController();
    // In the frame that the answer will have; all that the answer needs gets its place now, so that nothing moves later.
    const writing = fragment('<div class="said"><p class="outcome writing">Being written</p><div class="prose growing" aria-busy="true"></div></div>');
    const growing = writing.querySelector(".growing");
    if (at("welcome")) at("welcome").hidden = true;
    document.querySelectorAll("p.notice:not(.problem)").forEach((notice) => notice.remove());
    document.querySelector("h1").classList.add("quiet");
    at("columns").classList.add("filling");
    at("answer").hidden = at("evidence").hidden = false;
    body.replaceChildren();
    at("cards").replaceChildren();
    at("evidence-title").textContent = "Evidence";
    at("asked").textContent = fields.get("question");
    stop.hidden = false;
    at("search").hidden = true;
    if (at("talk").hidden) {
      at("talk").hidden = false;
      at("export").hidden = true;  // there is nothing yet
    }
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
        if (name === "earlier") {
          if (!data.after) at("thread").replaceChildren();
          at("thread").append(fragment(data.html));
        }
        if (name === "queue") wait(data.ahead);
        if (name === "passages") {
          show(at("cards"), data.html);
          at("evidence").hidden = data.count === 0;
          body.replaceChildren(writing);
          say(`Reading: ${data.count} ${data.count === 1 ? "passage" : "passages"} found.`);
        }
        if (name === "token") growing.textContent = (data.replaces ? "" : growing.textContent) + data.text;
        if (name === "done") {
          show(body, data.html);
          show(at("cards"), data.cards);
          at("evidence").hidden = !data.cards.trim();
          say({ answered: "The answer is complete.", quoted: "Not sure; the documents are quoted.",
            refused: "The documents do not answer this." }[data.answer.outcome]);
          if (data.conversation || data.notice) goOn(data.conversation);
          if (data.notice) at("thread").replaceChildren();
          if (document.activeElement === question) question.select();
        }
        if (name === "error") throw new Error(data.message);
      }
    } catch (error) {
      // What fetch says of a server that has gone is different in every browser.
      const gone = error instanceof TypeError ? "The server has gone; your question is still here." : error.message;
      if (running === mine) say(error.name === "AbortError" ? "Stopped." : gone);
      growing.removeAttribute("aria-busy");
      if (growing.previousSibling) growing.previousSibling.textContent = "Not finished";
      if (running === mine) {
        at("answer").hidden = !body.hasChildNodes();
        at("evidence").hidden = !at("cards").hasChildNodes();
      }
    } finally {
      if (running === mine) {
        running = null;
        wait(0);
        stop.hidden = true;
        at("search").hidden = false;
        at("talk").hidden = !at("conversation").value;
      }
    }
  }

  async function errorOf(response) {
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const notice = page.querySelector("p.notice:last-of-type");
    return (notice || page.body).textContent.trim() || `The server said ${response.status}.`;
  }

  form.addEventListener("submit", (event) => {
    if (event.submitter && event.submitter.value === "search") return;
    event.preventDefault();
    if (question.value.trim()) ask(new FormData(form));
  });
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && running) running.abort(); });
  stop.addEventListener("click", () => { if (running) running.abort(); question.focus(); });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form.anyway, form.again")) return;
    event.preventDefault();
    ask(new FormData(event.target));
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
    const said = button.closest("#answer-body, .turn").querySelectorAll(".prose, .quote");
    await navigator.clipboard.writeText(Array.from(said, (one) => one.innerText.trim()).join("\n\n"));
    button.textContent = "Copied";
  });
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
    said.textContent = !response ? "The server has gone." : !response.ok ? (await response.json()).error
      : pressed.name === "wrong" ? "Kept as a question to look at, under Inspect." : "Kept as an evaluation question.";
    form.replaceWith(said);
    said.focus();
  });
}

function watchCitations() {
  // The card that a citation leads to gets the focus, so that the next key goes on from there.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.cite");
    const card = link && document.querySelector(link.getAttribute("href"));
    if (!card) return;
    event.preventDefault();
    history.replaceState(null, "", link.getAttribute("href"));
    card.scrollIntoView({ block: "nearest" });
    card.focus();
  });
}

// A part of the page that changes while something runs: looked at often then, seldom or, without `idle`, never after.
async function watch(section, address, idle) {
  let running = section.dataset.running === "yes";
  while (running || idle) {
    await new Promise((done) => setTimeout(done, document.hidden ? 60000 : running ? 3000 : 15000));
    const response = await fetch(address).catch(() => null);
    if (!response || !response.ok) continue;
    running = response.headers.get("x-local-rag-running") === "yes";
    const html = await response.text();
    if (section.querySelector("details[open]")) running = true;  // somebody reads or writes there: later
    else show(section, html);
  }
}

// Files that are dropped anywhere on the form are chosen; the button still sends them.
function watchDrop(form, files) {
  for (const name of ["dragover", "dragleave", "drop"]) {
    form.addEventListener(name, (event) => {
      event.preventDefault();
      form.classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length) files.files = event.dataTransfer.files;
    });
  }
}

// A link that came through the form to log in has lost what follows its #.
if (at("passage") && !location.hash && /[?&](at|chunk)=/.test(location.search)) at("passage").scrollIntoView();
if (at("ask")) watchForm(at("ask"));
watchCitations();
watchCopies();
watchRatings();
const task = document.querySelector("section.task"), upload = at("upload");
if (task) watch(task, root + "/library/task", false);
const answering = document.querySelector("section.answering");
if (answering) watch(answering, answering.dataset.address, false);
const answers = document.querySelector("section.answers");
if (answers) watch(answers, answers.dataset.address, false);
if (upload) watchDrop(upload, at("files"));
const progress = document.querySelector("section.progress"), checkup = document.querySelector("section.checkup");
if (progress) watch(progress, root + "/library/progress", true);
if (checkup) watch(checkup, root + "/library/doctor", false);

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
    for (let box = target.checked ? null : above(target); box; box = above(box)) box.checked = false;
    count();
  });
  // Only the outermost ones are sent: what is in a chosen folder is chosen with it.
  tree.closest("form").addEventListener("formdata", ({ formData }) => {
    const chosen = boxes(tree).filter((box) => box.checked);
    new Set(boxes(tree).map((box) => box.name)).forEach((name) => formData.delete(name));
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
