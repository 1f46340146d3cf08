"""More ways to say things in the main domains: longer sentences, subordinate clauses, facts said in passing."""

from grammar import DOMAINS


def more(domain, multi=(), frames=(), noise=(), **slots):
    """Adds patterns to a domain that exists."""
    entry = DOMAINS[domain]
    entry.multi += multi
    entry.frames += frames
    entry.noise += noise
    for name, patterns in slots.items():
        entry.slots[name].patterns += patterns


more("contact", multi=[
    "{name}, who is [the|a] {role} at {company}, can be reached at {email}", "{name}< of {company}> asked me to pass on [his|her] number: {phone}", "if you have questions about the {~noun}, [call|ask] {name} on {phone}",
    "{name} has left {~company} and now works for {company}< in {city}>", "{name} recently became {role}< at {company}>", "our {role}, {name}, lives in {city}", "{company} has a new {role}: {name}< ({email})>",
    "[he|she] runs a {~adj} business in {city} called {company}", "as the {role} of {company}, {name} deals with the {~noun}", "for anything to do with the {~noun}, write to {name} ({email})< or call {phone}>",
    "I had [lunch|coffee|a chat] with {name} from {company}< the other day>", "{name} is based in {city}< and works for {company}>", "the {~noun} is handled by {name}, {email}", "{name}, {role}, {city}",
    "{name} - {role} - {company} - {email}<, {phone}>", "{name} / {company} / {phone}", "{name} | {role} | {company}< | {email}>< | {phone}>", "I live in {city} and work as [a|an] {role}< for {company}>",
    "hello, {name} here< from {company}>, please call me back [on|at] {phone}", "you'll find {name} in our {city} office<; [his|her] mail is {email}>", "you can get hold of {name} at {email}", "[his|her] details are {email} and {phone}",
    "either write to {email} or [call|ring] {phone}", "{name}, our {role}, is [happy|glad] to help: {phone}", "got the number of a good {role}: {name}, {phone}", "the {role} is called {name}<, {phone}><, {email}>",
    "[somebody|a woman|a man] called {name} from {company}<, [his|her] number is {phone}>", "{name} [takes over|took over] as {role}< at {company}>< on {~day}>", "[he|she] is [a|an] {role} from {city}", "the {~adj} {role} at {company} is {name}",
    "{name} works in {city} as [a|an] {role}", "hi, I'm {name}, [a|an|the] {role} [in|from|based in] {city}", "you asked me for the contact of our {role}: {name}, {email}", "say hello to {name}, who joins {company} as {role}",
    "$[Kind regards|Best wishes|Warm regards|Many thanks|See you],\n{name}\n<{role}\n><{company}, {city}\n><{phone}\n><{email}>", "$[Thanks|Cheers|Best],\n{name}<\n{role}, {company}>", "$\n{name}\n{role}\n{company}\n<{city}\n>E: {email}<\nT: {phone}>",
    "$Sent by {name}<, {role}>< ({company})>"],
    name=["I got your address from {}", "the one to ask is {}", "{} will help you", "I was told to contact {}", "please save the number of {}", "{} would like a call back", "you can always turn to {}", "{} is the person in charge", "it's {} again",
          "our new colleague is {}", "{} sends [his|her] regards", "feel free to contact {}", "{} is waiting for your call", "do you know {}?", "could you add {} to our files?", "my wife {} will pick up the phone", "the owner is {}"],
    email=["the easiest way is an e-mail to {}", "feel free to write to {}", "for details please mail {}", "you can get more information from {}", "if anything is unclear, write to {}", "the new address is {}", "[his|her] mailbox is {}", "I read my mail at {}", "questions go to {}", "just mail {}"],
    phone=["or simply ring {}", "if it is urgent, call {}", "[he|she] prefers calls: {}", "the office line is {}", "[his|her] direct line is {}", "please call back on {}", "the best number is {}", "outside office hours dial {}", "call back requested: {}", "the number has changed to {}", "try {}"],
    company=["[he|she] is from {}", "[he|she] recently moved to {}", "[he|she] founded {}", "the letterhead says {}", "[he|she] has been with {} for {~int} years", "I own {}", "we at {} would be glad to help", "a company called {}", "we know each other from {}", "the shop is called {}"],
    role=["[he|she] is now {}", "[he|she] has been promoted to {}", "working as {}", "[he|she] earns [his|her] living as [a|] {}", "they made [him|her] {}", "I am [a|an] {} by profession", "in my job as {} I travel a lot", "[he|she] is responsible as {}"],
    city=["the [shop|workshop|business] is in {}", "[he|she] sits in {}", "greetings from {}", "you can visit us in {}", "I am writing from {}", "we have an office in {}", "[he|she] is usually in {}", "the branch in {} is open"])

more("invoice", multi=[
    "we still have not received the {total} for invoice {number}<, which was due on {due}>", "{vendor} wants {total}< for {items}>< by {due}>", "attached is our [bill|invoice] {number} for {items}<, {total} in all>", "the [bill|invoice] from {vendor}< ({number})> [is over|comes to|is] {total}<, payable by {due}>",
    "[dear|hello] {customer}, thank you for buying {items}", "{customer} bought {items}<, which makes {total}>", "your invoice number is {number}< and the total comes to {total}>", "the outstanding amount for invoice {number} is {total}<; it was due on {due}>", "{vendor} has invoiced us {total}< (no. {number}<, issued {date}>)>",
    "{number} - {vendor} - {date} - {total}", "invoice #{number} / {customer}< / {items}> / {total}<, due {due}>", "on {date} we delivered {items}< to {customer}>", "receipt {number} for {customer}<, {date}>: {items}<, total {total}>", "{customer} was charged {total} by {vendor}< on {date}>",
    "a reminder that {total} is still open on invoice {number}< from {date}>", "the document is numbered {number} and dated {date}", "[got|received] a bill from {vendor} today<, number {number}><, they want {total}>", "I owe {vendor} {total}< for {items}>< and have to pay by {due}>", "{vendor} billed us for {items}<: {total}>",
    "payment of {total} is expected by {due}", "{total} to be paid to {vendor} [no later than|by|before] {due}", "{items} were sold to {customer}< on {date}>< for {total}>", "{total} (invoice {number}<, {date}>)", "the supplier {vendor} billed {customer}< on {date}> for {items}", "invoice date {date}, due {due}",
    "{items}. [Total|Sum|Amount]: {total}", "{items} = {total}", "invoice {number}, issued by {vendor} on {date}, is due on {due}", "$[Yours|Regards|Best regards|Sincerely],\n{vendor}", "$[Thanks for shopping|Thank you for shopping] at {vendor}!", "$[Yours faithfully|With kind regards], {vendor}"],
    number=["the document number is {}", "its number is {}", "we are still waiting for {}", "the one with the number {}", "kindly refer to {}", "look for {} in the files", "paper number {}", "it is filed as {}", "please mention {} when you pay", "number: {}"],
    vendor=["our supplier {} wrote", "I ordered it at {}", "from our friends at {}", "{} is still waiting for the money", "we got a letter from {}", "they are called {}", "{} thanks you for your business", "with greetings from {}", "it was {} who did the work", "work done by {}"],
    customer=["dear {}", "hi {}", "for the attention of {}", "{} bought it", "{} has to pay", "delivered to {}", "this is for our client {}", "the goods went to {}", "{} still owes us the money", "please send it to {}"],
    total=["they want {}", "the outstanding balance is {}", "so the price is {}", "please transfer {}", "that is {} altogether", "we are talking about {}", "the damage is {}", "I have to pay {}", "the final amount is {}", "you paid {}", "what you have to pay: {}", "balance due: {}", "it says {}"],
    due=["it has to be settled before {}", "the money should be there by {}", "we would like to have it by {}", "no later than {}", "you have until {}", "it was due on {}", "term of payment: {}", "the last day to pay is {}", "this was payable by {}"],
    date=["we wrote the bill on {}", "the paper is from {}", "it came on {}", "issued {}", "delivered on {}", "the work was done on {}", "they sent it on {}"],
    items=["it is for {}", "for {} we charge you", "the list: {}", "what you get: {}", "you received {}", "we charged for {}", "sold: {}", "we sold [you|them] {}", "thank you for buying {}", "thank you for your purchase of {}", "purchased: {}"])

more("event", multi=[
    "on {date} up to {attendees} people will [come|gather|meet]< at {venue}>", "the {title}, organised by {organizer}, is [on|planned for] {date}", "{organizer} will [speak|talk|be there] at the {title}< on {date}>", "it is called \"{title}\" and starts at {time}< on {date}>< in {venue}>", "the {title} has been moved to {date}<, {time}>",
    "you are [warmly|cordially|kindly] invited to the {title} on {date}<, at {time}><, in {venue}>", "[I'd like|we would like] to invite you to the {title}<, which takes place at {venue}>< on {date}>", "{date}, {time}: {title}< in {venue}>", "{title} in {city}<, {date}>", "our {title} is [back|here again]<: on {date}>< we meet at {venue}>",
    "doors open at {time}< and we expect [around|about] {attendees} [guests|visitors|people]>", "tickets are {price}< and can be bought from {organizer}>", "registration [costs|is] {price}<, ask {organizer}>", "the {title} will take place at {venue} in {city}< on {date}>", "questions about the {title}? Ask {organizer}", "the {title} [begins|starts] at {time} on {date}",
    "this year the {title} is at {venue}< and starts at {time}>", "{attendees} people are expected at the {title}< in {city}>", "hey, the {title} is on {date}<, starts {time}>< at {venue}>", "{title} @ {venue}<, {date}>< {time}>", "for {price} you can join the {title}< on {date}>", "open to {attendees} guests, {price} per person",
    "the {title} with {speakers}< is on {date}>", "{speakers} will be at the {title}< in {city}>", "come along to {venue} for the {title}<, {time}><, {date}>", "we will celebrate the {title}< at {venue}>< on {date}>", "the next {title} is happening on {date}< at {venue}>", "\"{title}\", {venue}, {date}<, {time}>", "the opening of \"{title}\" is on {date}< at {time}>< in {venue}>"],
    title=["the opening of \"{}\" is near", "it is called \"{}\"", "our {} is back", "who wants to come to the {}?", "the yearly {} is around the corner", "it's time for the {}", "we are planning a {}", "a talk called \"{}\"", "\"{}\" is the name of the evening", "have a look at the programme of the {}", "I'd love to see you at the {}", "the {} has been moved"],
    date=["the new date is {}", "we picked {}", "mark your calendars for {}", "it is happening on {}", "it all happens on {}", "keep {} free", "are you free on {}?", "see you on {}", "planned for {}"],
    time=["we open at {}", "it begins at {} sharp", "come at {}", "+ from {} on", "the first speaker is on at {}", "please arrive by {}", "doors: {}", "let's say {}", "everything begins at {}"],
    venue=["see you at {}", "we have rented {}", "{} is where it happens", "it has been moved to {}", "we all meet at {}", "the address is {}", "we start from {}"],
    attendees=["{} guests are expected", "it is open to {} people", "there are seats for {}", "{} runners have signed up", "around {} people will come", "a maximum of {} people", "we can take {}", "only {} places are left", "max. {} participants"],
    price=["it is {} per person", "registration costs {}", "entry {}", "tickets are on sale for {}", "get in for {}", "{} at the door", "{} per head", "bring {}", "the ticket price is {}"],
    organizer=["please register with {}", "your contact is {}", "{} has planned everything", "{} is in charge", "tickets from {}", "{} invites you", "sign up with {}", "organized by {}"])

more("product", multi=[
    "selling my {name}<, {colour}>, {price}", "the {name}< in {colour}> is now {price}", "our {name}< by {brand}> is [available|in stock] for {price}", "the {name} ({colour}, SKU {sku}) is [on sale|here]< for {price}>", "[get|buy] a {colour} {name}< for {price}>", "{name} made by {brand}<, {price}>",
    "we have {stock} units of the {name}< left>", "the {name} retails at {price}< and weighs {weight} kg>", "it is {colour}, weighs {weight} kg< and costs {price}>", "it is {colour}<, made by {brand}>< and sells for {price}>", "{name}, {colour}, {price}", "{name}, brand {brand}<, article no. {sku}><, {stock} left>", "a {colour} {name}, almost new<, made by {brand}>",
    "we are [sorry|afraid], the {name} ({sku}) is not what you ordered", "this week's deal: {name}< by {brand}> for {price}", "{brand}'s {name} costs {price}", "for sale: a {colour} {name}<, {price}>", "new arrival: the {name}< by {brand}>", "the {name} used to cost {~money} and is now {price}", "the {name} from {brand} is now in our [store|shop|catalogue]< for {price}>"],
    name=["the {} is now in our store", "I want to sell my {}", "new arrival: {}", "have you seen the {}?", "we recommend the {}", "our {} is popular", "we just received the {}", "deal of the week: {}", "looking for a {}? Here it is"],
    brand=["the brand is called {}", "it was built by {}", "it comes from {}", "brand is {}", "+, made by {}", "a real {}", "{} has been making these since {~year}"],
    price=["the regular price is {}", "I'm asking {}", "it can be yours for {}", "I want {} for it", "it retails for {}", "{}, pick up only", "price per piece {}", "our price: {}", "costs only {}", "take it for {}", "on sale for {}"],
    sku=["product number {}", "article no. {}", "please quote {} when ordering", "the code on the box is {}", "it has the number {}", "it is listed as {}", "ref. {}"],
    colour=["we have it in {}", "this one is {}", "it has a nice {} finish", "colour {}", "the only colour left is {}", "+ and {}"],
    weight=["it is {} kg heavy", "{} kg heavy", "with its {} kg it is easy to carry", "the box says {} kg", "and weighs {} kg"],
    stock=["{} left", "we have {} of them", "{} units left", "the last {} pieces", "our warehouse has {}", "{} more arrived today", "we could sell {} more"])

more("ticket", multi=[
    "[hello|hi], my name is {customer} and I have a problem: {summary}", "{customer} writes: {summary}", "we received a call from {customer}: {summary}", "{customer} ({email}) called: {summary}", "ticket {id} - {summary} - reported on {created}< by {customer}>", "on {created} {customer} opened case {id}<: \"{summary}\">",
    "{id}: {summary}<. Reported by {customer}>< on {created}>", "reported by {customer} <{email}>< on {created}>", "I'm {customer} and {summary}", "the problem: {summary}. My ticket number is {id}", "case {id}, {email}", "{summary}, says {customer}< ({email})>", "you can mail me at {email}, my name is {customer}",
    "subject: {summary}\n\n[hi|hello], <ticket {id}. >it is me, {customer}", "{customer} cannot work, {summary}", "{summary} (ticket {id}<, {priority}>)", "{customer} wrote on {created}: {summary}", "{id} was logged on {created}< by {customer}>", "opened {created} by {customer}< ({email})>", "user {customer} has this problem: {summary}", "name: {customer}\nproblem: {summary}",
    "$[Regards|Best|Thanks|Thank you],\n{customer}<, ticket {id}>", "ticket {id}, opened {created}< by {customer}>< ({email})>"],
    summary=["what happens: {}", "all I can say is: \"{}\"", "since this morning {}", "the title of the ticket is \"{}\"", "\"{}\" is what [he|she] wrote", "in short: {}", "it looks like {}", "I noticed that {}", "{} and I don't know why", "help, {}", "every time I try, {}", "the error: {}", "[he|she] told me that {}", "we see that {}", "it says: {}", "about: {}"],
    id=["logged under {}", "my reference is {}", "{} is the number you gave me", "my ticket number is {}", "{} is still open", "see {}", "in case you need it: {}", "number {}"],
    customer=["a user called {} wrote", "hello, {} here", "we received a call from {}", "{} is waiting for an answer", "{} opened this case", "{} cannot work", "the caller was {}", "regards, {}", "yours, {}", "{} asked for help"],
    email=["please write to {}", "you can mail me at {}", "send the answer to {}", "contact is {}", "my address is {}", "from: {}", "sent from {}"],
    priority=["priority {} please", "I think the priority is {}", "{} priority", "it has {} priority", "treat this as {}", "importance: {}"],
    created=["opened {}", "logged {}", "logged on {}", "it came in on {}", "I noticed it on {}", "we got this on {}", "date of report: {}"])
for member, patterns in {
        "low": ["it can wait until next month", "we can work around it", "not important", "no need to hurry", "only a small thing", "I am in no hurry", "it is annoying but not urgent", "I can live with it", "just so you know", "it would be nice to have this fixed some day"],
        "medium": ["an answer within the next few days would be nice", "please look at it this week", "some people are affected but work goes on", "it would help if you could fix it soon", "I would like an answer in the next days", "not critical but it should be fixed"],
        "high": ["I need this immediately", "please fix it as soon as you can", "nothing works any more", "we cannot work at all", "please treat this with the highest priority", "this has to be fixed today", "customers are waiting", "very urgent!!", "the deadline is today", "all our work has stopped", "this is a disaster"]}.items():
    DOMAINS["ticket"].slots["priority"].says[member] += patterns
for member, patterns in {
        "hardware": ["the printer is broken", "the screen flickers", "the battery is dead", "a key on the keyboard is missing", "the laptop does not charge", "the scanner makes noise", "the monitor stays black", "the fan is very loud"],
        "software": ["the app closes by itself", "the page shows an error", "the program will not install", "the update broke something", "the export function gives wrong results", "I get an error message on the website", "the form does not save"],
        "billing": ["the amount on the bill is wrong", "you took the money twice", "I paid but it says unpaid", "I did not get my refund", "my subscription was charged again", "there is a mistake in the invoice"],
        "network": ["the VPN does not connect", "no wifi in the office", "the internet is very slow", "the server cannot be reached", "we are offline", "the phones have no connection", "the connection is lost every hour"],
        "account": ["the password reset mail never came", "I cannot sign in", "it says my login is wrong", "my account was deleted", "please reset my password", "I cannot get into the portal", "my user name does not work"]}.items():
    DOMAINS["ticket"].slots["category"].says[member] += patterns

more("job", multi=[
    "{company} is looking for [a|an] {title}< in {location}>. {employment}<, {salary}><, {skills}>", "{employment} {title} wanted< for our office in {location}>", "we're hiring [a|an] {title}< ({employment})>!< Salary: {salary}>", "do you want to work as [a|an] {title}< in {location}>? {company} is waiting for you", "as [a|an] {title}< at {company}> you earn {salary}",
    "it is a {employment} job paying {salary}", "you know {skills}< and have {experience} years of experience>", "{employment} {title} needed< ({skills})>", "our {location} team needs [a|an] {title}<, {salary}>", "become [a|an] {title} at {company}< in {location}>", "{company}, {location}: {title}<, {employment}>", "send your application to {email} before {deadline}",
    "we need somebody who knows {skills}< to work as {title}>", "{title}, {employment}, {location}<, {salary}>", "applications for {title} close on {deadline}", "at {company} in {location} you can work as [a|an] {title}"],
    title=["then become [a|an] {}", "we need [a|an] {} who can start soon", "[a|an] {} is needed", "we have a place for [a|an] {}", "{} needed", "{} (m/f/d)", "job: {}", "do you want to be [a|an] {}?", "looking for: {}"],
    company=["the job is at {}", "it is offered by {}", "contact {}", "your new employer: {}", "we are {}", "apply at {}", "- {}", "{} offers you more"],
    location=["we sit in {}", "our team in {} is small", "the work is done in {}", "near {}", "for our office in {}", "our shop in {}"],
    salary=["it pays {}", "you will make {}", "the pay is {}", "we offer between {}", "paying {}", "{} per year", "{} a year, depending on experience", "salary {}"],
    skills=["required: {}", "{} are a must", "you need {}", "you should be able to handle {}", "helpful: {}", "please know {}", "we are looking for {}", "what you need: {}", "your strengths: {}"],
    deadline=["applications close on {}", "contact us before {}", "we look at everything that arrives before {}", "the last day to apply is {}", "don't wait longer than {}", "send everything before {}"])

more("booking", multi=[
    "hello, I'd like to book a table for {guests}< on {date}>< at {time}>. The name is {guest}", "reservation for {guests} people under {guest}<, {date}><, {time}>", "{guest}, party of {guests}<, {date}>< at {time}>", "we'll be {guests}< on {date}><, arriving around {time}>", "could you [squeeze in|take] {guests} of us on {date}< at {time}>?", "this is {guest}<, phone {phone}>, I need a table< on {date}>",
    "{guest} called to reserve< a table> for {guests}< on {date}>< at {time}>", "table {guests} people, {date}<, {time}>, name: {guest}", "please reserve a table for {guests} at {time} in the name of {guest}", "my wife and I would like to come on {date}< at {time}>", "booking confirmed: {guest}, {guests} guests, {date}<, {time}><, tel. {phone}>", "is there a table free on {date}< at {time}>< for {guests}>?",
    "the name is {guest} and my number is {phone}", "we will be {guests} people on {date}<. My name is {guest}>", "{guest} ({phone})", "{guests} of us would like to eat with you on {date}<, {time}>", "it's for {guest}<, {guests} people>", "{time} on {date} for {guests}", "please put {guest} down for {date}<, {time}>", "can I get a table< for {guests}> at {time} on {date}?", "we're celebrating on {date}<, {guests} people>, the name is {guest}"],
    guest=["in the name of {}", "{} asked me to book", "put it on {}", "{} called", "our name is {}", "the booking name is {}", "+, name {}", "write down {}", "kind regards, {}"],
    guests=["{} of us", "we need room for {}", "it's going to be {} people", "a group of {}", "party of {} please", "{} seats please", "we're {}", "{} persons in all", "including the kids we are {}"],
    date=["can you do {}?", "is {} possible?", "we thought of {}", "our date is {}", "+ (on {})", "how about {}?", "for {}"],
    time=["around {} would be good", "we'd like to come at {}", "arriving at {}", "starting at {}", "+ from {}", "say {}?", "we can be there at {}"],
    phone=["you can reach me at {}", "call back: {}", "+, tel. {}", "my mobile is {}", "ring me on {}", "please call {} to confirm", "in case of problems: {}", "tel. {}"],
    requests=["[he|she] asked for this: {}", "if possible: {}", "please remember: {}", "notes: {}", "a small wish: {}", "could you arrange this: {}", "special wish: {}", "extra: {}", "[he|she] asked for {}", "if you can, {}"])

more("measurement", multi=[
    "at {time}< on {date}> sensor {sensor}< in {location}> recorded a {quantity} of {value} {unit}", "{quantity} in {location} was {value} {unit}< on {date}>", "the {quantity} at {location} [dropped|rose|climbed|fell] to {value} {unit}< at {time}>", "{quantity} at {location}: {value} {unit}<, measured {date}><, {time}>", "I [weighed|measured|checked] it< on {date}>: {value} {unit}", "today ({date}) we read {value} {unit}< at {location}>",
    "probe {sensor} gave {value} {unit}< at {time}>", "{value} {unit} was the {quantity}< at {location}>", "measured with {sensor}: {value} {unit}", "the {quantity} reached {value} {unit}<, measured by {operator}>", "{sensor}: {value} {unit}, {location}<, {date}>< {time}>", "{operator} read {value} {unit} on {sensor}"],
    sensor=["measured with {}", "measured with probe {}", "the probe is {}", "{} recorded it", "from {}", "sensor no. {}"], location=["in {} it was measured", "we were at {}", "{} was checked", "the place was {}", "inside {}"],
    value=["exactly {}", "it was {}", "it rose to {}", "it dropped to {}", "now it is {}", "recorded: {}", "it stands at {}"])
for member, patterns in {"yes": ["all within normal range", "that is fine", "as it should be", "no problem there", "that's OK", "nothing to worry about", "the value is normal"],
                         "no": ["an alarm went off", "this is not normal", "far too high", "the limit was exceeded", "we must do something about it", "much too low", "that is not OK", "outside the allowed range"]}.items():
    DOMAINS["measurement"].slots["ok"].says[member] += patterns
