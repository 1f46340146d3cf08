"""Shapes of texts: tables, logs, chats, mails, slips, telegrams and sentences that are put together.

A shape is drawn part by part, so there are more shapes than texts. A fact is said by one of three means: with its label, with
a phrase that tells what it is, or bare. It is bare only where its class is the only one of the text and of the question, so
that a reader can tell what it is.
"""

import values as V
from grammar import CLOSINGS, DISTRACTORS, Writer, is_held_out

CLASS_OF = {V.PERSON: "person", V.PARTY: "party", V.CITY: "city", V.COMPANY: "company", V.CODE: "code", V.PRODUCT: "product", V.TITLE: "title", V.EVENT: "event", V.VENUE: "place",
            V.EMAIL: "email", V.PHONE: "phone", V.URL: "url", V.STREET: "street", V.COUNTRY: "country", V.ROLE: "role", V.CLAUSE: "note", V.COLOUR: "colour"}
BARE = {"person", "party", "city", "company", "code", "product", "email", "phone", "url", "street", "date", "time", "money", "choice", "event", "place", "country"}
PARTY_KEYS = set("customer client buyer sender recipient owner bill_to seller applicant payer claimant policy_holder".split())
HEADS = {"person": ["for {}", "by {}", "from {}", "with {}", "{}", "{}", "to {}", "{} here", "this is {}"], "company": ["of {}", "from {}", "at {}", "({})", "{}", "for {}", "by {}", "with {}"],
         "city": ["in {}", "to {}", "from {}", "near {}", "({})", "{}", "at {}", "out of {}", "for {}"], "code": ["no. {}", "{}", "#{}", "ref {}", "number {}", "({})", "under {}", "re {}", "about {}", "with {}"],
         "money": ["for {}", "at {}", "{}", "worth {}", "({})", "over {}", "total {}", "= {}", "{} in all", "that makes {}"], "date": ["on {}", "{}", "of {}", "({})", "dated {}", "by {}", "from {}"],
         "time": ["at {}", "{}", "from {}", "({})", "around {}"], "choice": ["{}", "({})", "is {}", "now {}", "status {}", "{} so far", "it is {}", "still {}", "marked {}", "set to {}", "- {} -"],
         "product": ["{}", "the {}", "a {}", "for the {}", "one {}", "with the {}"], "email": ["{}", "({})", "at {}", "<{}>", "mail {}"], "phone": ["{}", "({})", "tel {}", "call {}", "on {}"],
         "url": ["{}", "see {}", "({})", "at {}"], "street": ["{}", "at {}", "({})"], "event": ["{}", "the {}", "for the {}", "at the {}"], "place": ["in {}", "at {}", "{}", "({})"],
         "country": ["in {}", "{}", "from {}", "({})"]}
HEADS["party"] = HEADS["person"] + HEADS["company"][:4]
OPENERS = ["", "", "", "", "Please note:", "FYI", "This is about", "Regarding", "Re", "Update:", "Update on", "Quick question about", "Do you know more about", "Reminder:", "As agreed,", "Just in:",
           "We have", "Here is", "I am writing about", "Can you look into", "Could you confirm", "What about", "Today:", "Attention:", "For the record:", "In short:", "Done:", "We got", "Entry:",
           "New:", "Still waiting for", "It concerns", "I am calling about", "Short note on", "To do:", "Please register", "Please file", "Thanks for", "We talked about", "Following up on", "I saw", "Once again:",
           "According to our records,", "You asked about", "Just checking on", "Kindly process", "As mentioned,", "On the list:", "Next:", "Good news:", "Bad news:", "Correction:", "I need help with"]
JOINS = [", ", ", ", ", ", " ", " ", " - ", "; ", " and ", ": ", " / ", ", and ", " – ", ". ", " | ", "... "]
TITLES = ["SUMMARY", "NOTE", "REPORT", "Details", "CONFIRMATION", "Record", "Overview", "Copy", "ENTRY", "Data sheet", "File note", "Notice", "Card", "Statement", "Form", "Ticket", "Docket",
          "Acknowledgement", "Voucher", "Registration", "RECORD CARD", "Label", "Protocol"]
SAID = ["hi", "hello there", "good morning", "hey", "one moment", "sure", "ok", "got it", "thanks", "anything else?", "let me see", "yes please", "right", "can you help me?", "I have a question", "noted", "perfect", "bye",
        "what was the name again?", "is that all?", "yes", "sorry, typing on my phone", "hang on", "and?", "fine"]
FILLERS = ["thanks", "pls", "asap", "ok?", "bye", "cheers", "please confirm", "call me", "stop", "ok", "more later", "regards", "will do", "see you"]
SPEAKERS = ["support", "agent", "bot", "A", "B", "me", "you", "Support", "Agent", "user", "desk", "clerk", "operator", "Q", "client", "host", "Team", "office", "manager"]


def class_of(slot):
    if getattr(slot, "cls", None):
        return slot.cls
    kind = slot.kind
    if isinstance(kind, V.Date):
        return "date"
    if isinstance(kind, V.Time):
        return "time"
    if isinstance(kind, V.Money):
        return "money"
    if isinstance(kind, V.Enum):
        return "choice"
    return CLASS_OF.get(kind, "other")


class ShapeWriter(Writer):
    """Writes texts for training: those of the domains, and shapes."""

    def __init__(self, rng, domain, asked, present):
        super().__init__(rng, domain, False)
        self.slots = domain.slots
        names = set(asked) | set(present)
        classes = {n: class_of(domain.slots[n]) for n in names}
        counts = {}
        for cls in classes.values():
            counts[cls] = counts.get(cls, 0) + 1
        company, person = "company" in counts, "person" in counts
        self.ctx.party = "person" if company else "company" if person and rng.random() < 0.6 else None
        parties = counts.get("party", 0) + counts.get("person", 0)
        if not company:
            parties += 0 if self.ctx.party == "company" and counts.get("party", 0) == 1 else 0
        self.firms = not company and rng.random() < 0.5      # names of people may be those of firms
        alone = {cls for cls, n in counts.items() if n == 1}
        if parties > 1:
            alone -= {"person", "party"}
        self.bare = {n for n, cls in classes.items() if cls in alone and cls in BARE}
        self.classes = classes

    def make(self, slot):
        super().make(slot)
        if self.firms and slot.kind is V.PERSON and PARTY_KEYS & set(slot.keys["value"]) and self.rng.random() < 0.6:
            name = V.company(self.ctx)
            name = name.lower() if self.lower else name
            self.values[slot.name] = V.Value(name, {"value": name})
        if self.classes.get(slot.name) == "money" and self.values[slot.name].surface.replace(",", "").isdigit():
            self.bare.discard(slot.name)        # a number alone could be anything

    # ---- how a fact is said ----

    def label(self, name):
        slot = self.slots[name]
        labels = [x for x in slot.labels if not is_held_out(x)] or slot.labels
        if self.rng.random() < 0.2:
            labels = next(iter(slot.keys.values()))
            labels = [labels[0]] if self.rng.random() < 0.5 else labels
            return self.rng.choice(labels).replace("_", self.rng.choice([" ", " ", "_"]))
        return self.rng.choice(labels)

    def surface(self, name):
        return self.values[name].surface

    def labelled(self, name, colon=None):
        rng = self.rng
        label = self.label(name)
        if colon is None:
            label = label.lower() if rng.random() < 0.7 else label
            colon = rng.choice([" ", ": ", ": ", " is ", " = ", " - "])
            return rng.choice(["", "", "the ", "with "]) + label + colon + self.surface(name) if colon in (" ", " is ") else label + colon + self.surface(name)
        return label + colon + self.surface(name)

    def phrase(self, name):
        """A phrase of the slot: not a whole sentence where it can be helped."""
        slot = self.slots[name]
        text = self.say(slot, True)[0]
        return text.rstrip(".")

    def mention(self, name, bare=0.55):
        rng = self.rng
        if name in self.bare and rng.random() < bare:
            return rng.choice(HEADS[self.classes[name]]).replace("{}", self.surface(name))
        if isinstance(self.slots[name].kind, V.Flag) or rng.random() < 0.75:
            return self.phrase(name)
        return self.labelled(name)

    def case(self, text, how):
        return text.upper() if how == 1 else text.lower() if how == 2 else text

    # ---- shapes ----

    def table(self, names, absent):
        rng = self.rng
        names = names + [n for n in absent if rng.random() < 0.4]
        if rng.random() < 0.6:
            rng.shuffle(names)
        how = rng.choice([0, 0, 1, 2, 2])
        heads = [self.case(self.label(n), how) for n in names]
        blank = rng.choice(["", "", "-", "n/a", " "])
        cells = [self.surface(n).strip().replace("\n", ", ") if n in self.values else blank for n in names]
        gap = rng.choice([" | ", " | ", " | ", "|", ";", "; ", "\t", "  ", " / ", ","])
        if gap in (",", ";", "; ", " / ", "|", " | ") and any(gap.strip() in c for c in cells):
            gap = "\t"
        if rng.random() < 0.25:
            rows = [f"{h}{gap}{c}" for h, c in zip(heads, cells)]
        else:
            rows = [gap.join(heads), gap.join(cells)]
        if "|" in gap and rng.random() < 0.7:
            rows = [f"{gap.strip()}{' ' * (len(gap) > 1)}{row}{gap.rstrip()}" for row in rows]
            if rng.random() < 0.4 and len(rows) == 2:
                rows.insert(1, "|" + "---|" * len(names))
        return "\n".join(rows)

    def pairs(self, names, absent):
        rng = self.rng
        names = names + [n for n in absent if rng.random() < 0.15]
        if rng.random() < 0.5:
            rng.shuffle(names)
        how = rng.choice([0, 1, 2, 2, 2])
        equal, gap, quote = rng.choice([("=", " ", 1), ("=", "&", 0), ("=", "; ", 0), (": ", "\n", 0), (": ", ", ", 2), (":", " ", 1), ("=", "\n", 0), ("=", ", ", 1), (" = ", "\n", 2), (" -> ", "\n", 0), (" => ", ", ", 0)])
        out = []
        for n in names:
            key = self.case(self.label(n), how)
            key = key.replace(" ", rng.choice(["_", "_", "", "-"])) if equal == "=" else key
            value = self.surface(n).strip().replace("\n", ", ") if n in self.values else rng.choice(["", "null", "-", "none"])
            if quote == 2 or (quote == 1 and " " in value):
                value = f'"{value}"'
            out.append(f"<{key}>{value}</{key}>" if equal == " => " else f"{key}{equal}{value}")
        text = gap.join(out)
        return ("{" + text + "}") if quote == 2 and rng.random() < 0.5 else text

    def bullets(self, names):
        rng = self.rng
        bullet = rng.choice(["- ", "* ", "• ", "", "+ ", "> ", "1. "])
        kind = rng.random()
        out = []
        for i, n in enumerate(names):
            if kind < 0.45:
                text = self.mention(n, 0.7)
            elif kind < 0.75:
                text = self.case(self.label(n), rng.choice([0, 2, 2])) + rng.choice([" ", " ", ": "]) + self.surface(n)
            else:
                text = self.surface(n) if n in self.bare else self.labelled(n)
            out.append((f"{i + 1}. " if bullet == "1. " else bullet) + text)
        return "\n".join(out)

    def slip(self, names):
        """A head, then lines; some have several values, some no label."""
        rng = self.rng
        out, i = [], 0
        if rng.random() < 0.75:
            out.append(rng.choice(TITLES) if rng.random() < 0.7 else rng.choice(TITLES).upper())
        colon = rng.choice([": ", ": ", " ", " - ", "\t", ".... ", "  "])
        while i < len(names):
            count = rng.choice([1, 1, 1, 2, 2, 3])
            parts = []
            for n in names[i:i + count]:
                roll = rng.random()
                text = self.surface(n) if n in self.bare and roll < 0.55 else self.mention(n) if roll < 0.2 else self.labelled(n, colon)
                if n in self.bare and self.classes[n] == "choice" and rng.random() < 0.5:
                    text = rng.choice(["*** {} ***", "[{}]", "({})", ">> {}", "* {} *", "-- {} --"]).format(self.surface(n))
                parts.append(text)
            i += count
            line = rng.choice([" ", ", ", ", ", " / ", " - ", "   ", " | "]).join(parts)
            if out and rng.random() < 0.15:
                out[-1] += " " + line
            else:
                out.append(line)
            if rng.random() < 0.08:
                out.append(rng.choice(["---", "======", "* * *", "..."]))
        return "\n".join(out)

    def telegram(self, names):
        rng = self.rng
        parts = []
        for n in names:
            if n in self.bare and rng.random() < 0.7:
                parts.append(self.surface(n) if rng.random() < 0.6 else rng.choice(HEADS[self.classes[n]]).replace("{}", self.surface(n)))
            else:
                parts.append(self.phrase(n) if rng.random() < 0.4 or isinstance(self.slots[n].kind, V.Flag) else self.labelled(n, rng.choice([" ", ": ", ":"])))
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            parts.insert(rng.randint(0, len(parts)), rng.choice(FILLERS))
        gap = rng.choice([", ", " ", ". ", "! ", "; ", " - ", " / ", None])
        text = parts[0]
        for p in parts[1:]:
            text += (rng.choice(JOINS) if gap is None else gap) + p
        return text

    def sentences(self, names):
        """Sentences with one to four facts each."""
        rng = self.rng
        out, i = [], 0
        while i < len(names):
            count = rng.choice([1, 1, 2, 2, 3, 4])
            group = names[i:i + count]
            i += count
            text = rng.choice(OPENERS) if rng.random() < 0.5 else ""
            for k, n in enumerate(group):
                part = self.mention(n)
                if n in self.bare and rng.random() < 0.12:
                    part = rng.choice(["{} (see above)", "our {}", "the said {}", "{}, as usual,", "{} again", "dear {}"]).replace("{}", self.surface(n)) if self.classes[n] != "choice" else part
                text += (" " if text and k == 0 else rng.choice(JOINS[:9]) if k else "") + part
            if not self.lower:
                text = text[:1].upper() + text[1:]
            out.append(text + ("" if text[-1:] in ".!?" else rng.choice([".", ".", ".", ".", "!", "?", ";", "..."])))
        for _ in range(rng.choice([0, 0, 0, 1, 2])):
            out.insert(rng.randint(0, len(out)), self.filler())
        return rng.choice([" ", " ", " ", "\n"]).join(out)

    def filler(self):
        rng = self.rng
        text = V.random_sentence(self.ctx) if rng.random() < 0.4 else self.expand(rng.choice(DISTRACTORS + CLOSINGS))[0]
        return text.lower() if self.lower else text

    def chat(self, names):
        rng = self.rng
        names = list(names)
        speakers = rng.sample(SPEAKERS, 2)
        person = next((n for n in names if n in self.bare and self.classes[n] in ("person", "party")), None)
        if person and rng.random() < 0.4:
            names.remove(person)
            speakers[0] = self.surface(person)
        elif person is None and not any(c in ("person", "party") for c in self.classes.values()) and rng.random() < 0.5:
            speakers[rng.randint(0, 1)] = V.first_name(self.ctx)
        clock = rng.random()
        hour, minute = rng.randint(7, 22), rng.randint(0, 50)
        times = "time" not in self.classes.values() and clock < 0.5
        form = rng.choice(["{t} {s}: {m}", "{s} ({t}): {m}", "{t} - {s}: {m}", "{s} {t}\n{m}"]) if times else rng.choice(["{s}: {m}", "{s}: {m}", "<{s}> {m}", "{s} - {m}", "{s} > {m}"])
        out, i, who = [], 0, 0
        while i < len(names) or not out:
            roll = rng.random()
            if roll < 0.25 and len(out) < 9:
                message = rng.choice(SAID)
            else:
                count = rng.choice([1, 1, 1, 2, 2, 3])
                message = rng.choice([", ", " ", ". "]).join(self.mention(n, 0.5) for n in names[i:i + count])
                if roll < 0.4:
                    message = (rng.choice(OPENERS).lower() + " " + message).strip()
                i += count
            message += rng.choice(["", "", "", ".", "?", "!"]) if message[-1:] not in ".?!" else ""
            out.append(form.replace("{t}", f"{hour:02d}:{minute:02d}").replace("{s}", speakers[who]).replace("{m}", message))
            minute = min(59, minute + rng.randint(0, 3))
            who = rng.choice([0, 1, 1 - who, 1 - who])
        if person and person not in names and not any(self.surface(person) in line for line in out):
            out.append(form.replace("{t}", f"{hour:02d}:{minute:02d}").replace("{s}", speakers[0]).replace("{m}", "ok"))
        return "\n".join(out)

    def mail(self, names):
        rng = self.rng
        names = list(names)
        head, tail = [], []
        code = next((n for n in names if n in self.bare and self.classes[n] in ("code", "product", "event")), None)
        if rng.random() < 0.6:
            subject = self.expand(rng.choice(["your message", "{~noun} and {~noun}", "the {~adj} {~noun}", "question", "hello", "update", "our call"]))[0]
            if code and rng.random() < 0.6:
                names.remove(code)
                subject = rng.choice(["{}", "Re: {}", "AW: {}", "Your {}", "{} - update", "Question on {}", "Fwd: {}"]).replace("{}", self.surface(code))
            head.append("Subject: " + subject)
        person = next((n for n in names if n in self.bare and self.classes[n] in ("person", "party")), None)
        people = any(c in ("person", "party") for c in self.classes.values())
        if person and rng.random() < 0.5:
            names.remove(person)
            if rng.random() < 0.4:
                head.insert(0, "From: " + self.surface(person))
            else:
                tail = [rng.choice(["Regards,", "Best,", "Yours", "Thanks,", "Kind regards", "Cheers,", "-- "]), self.surface(person)]
                near = [n for n in names if n in self.bare and self.classes[n] in ("company", "city", "phone", "email", "role")]
                for n in near[:rng.choice([0, 1, 2])]:
                    names.remove(n)
                    tail.append(self.surface(n))
        greeting = rng.choice(["Hi,", "Hello,", "Dear all,", "Good morning,", "Hi team,", "Hey,", "Dear colleagues,", ""])
        if not people and rng.random() < 0.4:
            greeting = "Dear " + V.first_name(self.ctx) + ","
        body = self.sentences(names) if names else self.filler()
        return "\n".join([*head, *([greeting] if greeting else []), body, *tail])

    def mixture(self, names, absent):
        rng = self.rng
        cut = rng.randint(1, len(names) - 1) if len(names) > 1 else 1
        first = rng.choice([self.sentences, self.telegram, self.bullets])(names[:cut])
        if cut == len(names):
            return first
        second = rng.choice([lambda n: self.pairs(n, absent), lambda n: self.table(n, absent), self.slip, self.bullets, self.sentences])(names[cut:])
        parts = [first, second]
        if rng.random() < 0.3:
            parts.reverse()
        return "\n".join(parts)

    def text(self, present, absent):
        rng = self.rng
        if rng.random() < (0.1 if self.domain.name == "mixed" else 0.5):
            return super().text(present, absent)
        for name in present:
            self.make(self.slots[name])
        names = list(present)
        if rng.random() < 0.7:
            rng.shuffle(names)
        roll = rng.random()
        for weight, shape in ((0.3, lambda: self.sentences(names)), (0.11, lambda: self.mail(names)), (0.11, lambda: self.chat(names)), (0.1, lambda: self.slip(names)), (0.1, lambda: self.telegram(names)),
                              (0.07, lambda: self.table(names, absent)), (0.06, lambda: self.pairs(names, absent)), (0.07, lambda: self.bullets(names)), (1, lambda: self.mixture(names, absent))):
            if roll < weight:
                break
            roll -= weight
        text = shape()
        return self.around(text)

    def around(self, text):
        rng = self.rng
        if rng.random() < 0.07:
            text = rng.choice(TITLES) + rng.choice(["\n", ": ", ". ", "\n\n"]) + text
        if rng.random() < 0.06:
            text += rng.choice(["\n", " "]) + self.filler()
        return text.strip()

