"""Further domains, second part. The last five are held out: training never sees them."""

import values as V
import words as W
from grammar import D, S

def person_slot(name, keys, labels, *patterns):
    return S(name, V.PERSON, keys, labels, *patterns, "{} is the " + labels.split("|")[0].lower(), "+ ({})")


def date_slot(name, keys, labels, *patterns):
    return S(name, V.Date(), keys, labels, "+ on {}", "date: {}", *patterns)


D("meeting", [
    S("topic", V.TITLE, "topic subject title about", "Topic|Subject|About|Title|Agenda", "the topic is {}", "we will talk about {}", "subject: {}", "it is about {}", "meeting about {}", "+ about {}", "on the agenda: {}", "let's discuss {}", "+ to discuss {}", "re: {}"),
    date_slot("date", "date meeting_date day", "Date|Day|When", "we meet on {}", "it is on {}", "how about {}?", "let's meet on {}", "scheduled for {}", "are you free on {}?"),
    S("hours", V.Times(), "start:start_time|from|start end:end_time|to|end", "Time|Hours|When", "+ {}", "we meet {}", "time: {}", "the room is booked {}", "it goes {}", "{}"),
    S("room", V.VENUE, "room location place", "Room|Location|Where", "+ in {}", "+ at {}", "we meet in {}", "the room is {}", "location: {}", "in {} as usual", "room: {}"),
    S("attendees", V.Strings(V.person, 1, 5), "attendees participants people", "Attendees|Participants|Present|With", "+ with {}", "attendees: {}", "{} will be there", "present: {}", "invited: {}", "{} are invited", "participants: {}", "please invite {}", "{} took part"),
    person_slot("chair", "chair organizer host", "Chair|Organizer|Host", "{} leads the meeting", "chaired by {}", "{} called the meeting", "{} chairs it"),
    S("online", V.Flag(), "online remote video_call", "Online|Video call", says={"yes": ["we meet online", "it is a video call", "on Teams", "the call link follows"], "no": ["we meet in person", "no video call", "everybody must be in the room"]}),
    S("actions", V.Strings(V.clause_text, 1, 3), "action_items actions todos", "Actions|Action items|To do", "action items: {}", "to do: {}", "next steps: {}", "we agreed: {}"),
], canonical="topic date hours room attendees online", required="topic attendees",
  multi=["{topic}<, {date}><, {hours}><, {room}>", "meeting on {date}< {hours}>< in {room}>", "{attendees} meet on {date}< {hours}>", "{chair} invites {attendees}< to discuss {topic}>", "let's meet on {date} in {room}< to talk about {topic}>", "we [met|meet] on {date}< in {room}>< with {attendees}>"],
  headers=["MEETING", "Minutes", "Meeting notes"], noise=["bring your {~thing}", "last time we talked {~int} minutes", "coffee will be there", "{~first} is ill"])

D("expense", [
    S("what", V.CLAUSE, "description purpose item", "Description|Purpose|For", "it was for this: {}", "purpose: {}", "description: {}", "note: {}"),
    S("amount", V.Money(1, 3000), "amount:amount|total|cost currency:currency", "Amount|Total|Cost|Sum", "I spent {}", "+ for {}", "it cost {}", "amount: {}", "I paid {}", "the receipt is over {}", "total {}", "please refund {}", "{} out of my own pocket", "it came to {}"),
    date_slot("date", "date expense_date spent_on", "Date|Spent on|Receipt date", "I paid on {}", "the receipt is from {}", "+, {}", "it was on {}"),
    person_slot("employee", "employee name submitted_by claimant", "Employee|Name|Submitted by|Claimant", "submitted by {}", "my name is {}", "{} paid for it", "{} hands in a receipt", "{} asks for a refund"),
    S("category", V.Enum(travel="travel|train|taxi|flight|bus|petrol", meals="meals|lunch|dinner|food|restaurant", lodging="hotel|lodging|accommodation", supplies="supplies|office supplies|stationery", training="training|course|conference"), "category type", "Category|Type", "+ for {}", "category: {}", "it was {}", "type: {}"),
    S("vendor", V.COMPANY, "vendor merchant shop", "Vendor|Merchant|Shop|Paid to", "+ at {}", "paid to {}", "bought at {}", "merchant: {}", "the receipt is from {}"),
    S("approved", V.Flag(), "approved is_approved", "Approved", says={"yes": ["the boss approved it", "approved", "it has been signed off", "my manager said yes"], "no": ["not approved yet", "it was rejected", "still waiting for approval", "my manager said no"]}),
], canonical="employee date amount category vendor approved", required="amount",
  multi=["{employee} spent {amount}< at {vendor}>< on {date}>", "{date}: {amount}<, {vendor}><, {category}>", "I paid {amount} at {vendor}< on {date}>", "{category} for {amount}<, {date}>", "{employee} paid {amount} for {category}< on {date}>"],
  headers=["EXPENSE", "Expense report", "Expenses"], noise=["the receipt is attached", "it rained", "I lost the ticket of {~money}", "please pay by {~date}"])

D("medication", [
    S("drug", V.pick(W.MEDICINE), "drug medication medicine name", "Drug|Medication|Medicine|Name", "take {}", "the doctor prescribed {}", "medication: {}", "prescription: {}", "{} was prescribed", "[he|she] gets {}", "the medicine is {}", "start with {}"),
    S("dose", V.Integer(1, 1000, words=False), "dose_mg dose strength_mg", "Dose|Dose (mg)|Strength", "{} mg", "+ {} mg", "the dose is {} mg", "+ at a dose of {} mg", "dose: {} mg", "{} milligrams each time"),
    S("times", V.Integer(1, 6), "times_per_day frequency daily_doses", "Times per day|Frequency|Per day", "{} times a day", "+ {} times a day", "{} times per day", "{}x daily", "every day {} doses"),
    S("days", V.Integer(2, 90), "days duration_days", "Days|Duration|For (days)", "+ for {} days", "for {} days", "the treatment lasts {} days", "{} days in all"),
    person_slot("patient", "patient patient_name name", "Patient|Name", "the patient is {}", "+ for {}", "prescribed to {}", "{} should take it"),
    person_slot("doctor", "doctor prescriber prescribed_by", "Doctor|Prescriber|Prescribed by", "prescribed by Dr. {}", "Dr. {} wrote the prescription", "signed Dr. {}"),
    date_slot("date", "date prescribed_on start_date", "Date|Prescribed on", "prescribed on {}", "starting {}", "from {} on"),
    S("food", V.Flag(), "with_food take_with_food", "With food", says={"yes": ["take it with food", "with a meal", "always after eating"], "no": ["on an empty stomach", "without food", "not with meals"]}),
    S("allergies", V.strings_of(W.FOOD + W.MEDICINE, 1, 3), "allergies allergic_to", "Allergies|Allergic to", "allergies: {}", "allergic to {}", "[he|she] is allergic to {}", "known allergies: {}"),
], canonical="patient drug dose times days doctor date food", required="drug",
  multi=["{drug} {dose} mg<, {times} times a day><, for {days} days>", "{patient} takes {drug}< {dose} mg>< {times} times a day>", "Dr. {doctor} prescribed {dose} mg of {drug}< to {patient}>< on {date}>", "take {dose} mg of {drug} {times} times a day<, for {days} days>"],
  headers=["PRESCRIPTION", "Medication plan"], noise=["do not drive", "keep away from children", "come back in {~int} days", "store in a {~adj} place"])

D("hotel", [
    S("name", V.Text(lambda c: c.rng.choice(["Hotel ", "The ", "Grand Hotel ", "Hostel ", ""]) + (V.invented(c.rng, 2, 3) if c.rng.random() < .5 else c.rng.choice(W.VENUE_A)) + c.rng.choice(["", " Inn", " Hotel", " Lodge", " Resort"])), "name hotel hotel_name", "Hotel|Name|Hotel name", "the hotel is called {}", "we stayed at {}", "welcome to {}", "{} is a nice hotel", "hotel: {}", "book {} now", "I can recommend {}"),
    S("stars", V.Integer(1, 5), "stars rating category", "Stars|Category", "it has {} stars", "{} stars", "a {}-star hotel", "+ with {} stars", "{}-star place"),
    S("city", V.CITY, "city town location", "City|Town|Location", "+ in {}", "it is in {}", "located in {}", "city: {}", "you find it in {}"),
    S("price", V.Money(20, 900), "amount:price_per_night|price|rate currency:currency", "Price per night|Price|Rate|Per night", "{} per night", "a night costs {}", "rooms from {}", "+ for {} a night", "the rate is {}", "we paid {} per night"),
    S("rooms", V.Integer(4, 600), "rooms number_of_rooms", "Rooms", "it has {} rooms", "{} rooms", "+ with {} rooms", "there are {} rooms"),
    S("pool", V.Flag(), "pool has_pool swimming_pool", "Pool|Swimming pool", says={"yes": ["there is a pool", "with swimming pool", "it has a big pool", "you can swim in the pool"], "no": ["there is no pool", "without a pool", "no swimming pool"]}),
    S("amenities", V.strings_of("wifi|parking|sauna|gym|bar|restaurant|spa|garden|air conditioning|breakfast buffet|laundry|terrace".split("|"), 1, 5), "amenities services facilities", "Amenities|Services|Facilities", "it offers {}", "amenities: {}", "there is {}", "facilities: {}", "+ with {}"),
    S("phone", V.PHONE, "phone telephone", "Phone|Tel", "call {}", "phone {}", "tel. {}", "+ ({})"),
    S("website", V.URL, "website url", "Website|Web", "book at {}", "see {}", "website: {}"),
], canonical="name stars city price rooms pool amenities", required="name amenities",
  multi=["{name}<, {stars} stars><, {city}>", "{name} in {city}< has {rooms} rooms><, from {price}>", "{name} ({stars} stars)< - {price} per night>", "the {stars}-star hotel {name}< in {city}>"],
  headers=["HOTEL", "Hotel info"], noise=["the beach is {~int} minutes away", "the staff is {~adj}", "check-in is at {~time}", "opened in {~year}"])

D("employee", [
    person_slot("name", "name employee full_name", "Employee|Name|Full name", "our new colleague is {}", "please welcome {}", "{} joins us", "{} has been hired", "employee: {}", "we hired {}", "{} works here", "staff member: {}"),
    S("id", V.CODE, "employee_id id staff_number personnel_number", "Employee ID|ID|Staff number|Personnel no.", "employee ID {}", "+ (ID {})", "staff number {}", "the personnel number is {}"),
    S("department", V.pick(W.DEPARTMENT), "department team unit", "Department|Team|Unit", "+ in {}", "[he|she] works in {}", "the department is {}", "department: {}", "[he|she] joins the {} team", "+ in the {} department"),
    S("role", V.ROLE, "position job_title role", "Position|Role|Job title", "+ as {}", "[he|she] works as [a|] {}", "[his|her] position is {}", "[he|she] is our {}", "job title: {}", "hired as {}"),
    S("start", V.Date(), "start_date hired_on joined", "Start date|Hired|Joined|First day", "[he|she] starts on {}", "+ from {}", "the first day is {}", "hired on {}", "joined on {}", "with us since {}", "start date: {}"),
    S("salary", V.Money(20000, 150000, 0), "amount:salary|annual_salary currency:currency", "Salary|Annual salary|Pay", "the salary is {}", "[he|she] earns {}", "+ for {} a year", "annual pay {}"),
    person_slot("manager", "manager reports_to supervisor boss", "Manager|Reports to|Supervisor", "[he|she] reports to {}", "the manager is {}", "[his|her] boss is {}", "supervised by {}"),
    S("email", V.EMAIL, "email work_email", "Email|E-mail", "email {}", "[his|her] address is {}", "write to {}", "+ ({})"),
    S("full_time", V.Flag(), "full_time is_full_time", "Full-time|Full time", says={"yes": ["it is a full-time position", "[he|she] works full time", "40 hours a week"], "no": ["[he|she] works part time", "only two days a week", "a part-time position"]}),
    S("languages", V.strings_of("English German French Spanish Italian Dutch Japanese Chinese Polish Swedish Russian Arabic Portuguese Turkish".split(), 1, 4), "languages speaks", "Languages|Speaks", "[he|she] speaks {}", "languages: {}", "speaks {}", "fluent in {}"),
], canonical="name id department role start manager email full_time", required="name",
  multi=["{name} joins {department}< as {role}>< on {start}>", "{name}<, {role}><, {department}>< (ID {id})>", "{name} starts as {role}< in {department}>< on {start}>", "{name} reports to {manager}", "on {start} {name} [starts|joined]< as {role}>"],
  headers=["EMPLOYEE", "Staff record", "New hire"], noise=["[he|she] has {~int} holidays", "the desk is {~adj}", "welcome aboard", "{~first} will show [him|her] around"])

D("weather", [
    S("city", V.CITY, "city location place", "City|Location|Place", "+ in {}", "the weather in {}", "forecast for {}", "city: {}", "here in {}", "in {} today", "weather report for {}"),
    date_slot("date", "date day", "Date|Day", "+, {}", "forecast for {}", "the report of {}"),
    S("high", V.Integer(-15, 42, False, {}), "high max_temperature temp_max", "High|Max|Maximum", "the high is {} degrees", "highs of {}", "up to {} degrees", "max {}", "it will be {} degrees at most", "maximum {}°C"),
    S("low", V.Integer(-30, 25, False, {}), "low min_temperature temp_min", "Low|Min|Minimum", "the low is {} degrees", "lows of {}", "down to {} degrees at night", "min {}", "minimum {}°C"),
    S("sky", V.Enum(sunny="sunny|clear|bright|sunshine|clear skies", cloudy="cloudy|overcast|clouds|grey", rainy="rainy|rain|showers|wet|drizzle", snowy="snowy|snow|snowfall", stormy="stormy|storms|thunderstorms|thunder"), "condition conditions sky", "Condition|Sky|Conditions", "it will be {}", "expect {}", "conditions: {}", "+ with {}", "sky: {}", "mostly {}"),
    S("wind", V.Integer(0, 120, False), "wind_kmh wind_speed wind", "Wind|Wind (km/h)", "wind at {} km/h", "winds of {} km/h", "wind: {} km/h", "gusts up to {} km/h", "+ and wind of {} km/h"),
    S("humidity", V.Integer(10, 100, False), "humidity humidity_percent", "Humidity|Humidity (%)", "humidity {} percent", "humidity is at {}%", "{}% humidity", "humidity: {}%"),
    S("rain", V.Integer(0, 100, False), "rain_chance precipitation_probability chance_of_rain", "Chance of rain|Rain probability", "{}% chance of rain", "the chance of rain is {} percent", "rain probability {}%"),
    S("warning", V.Flag(), "warning alert storm_warning", "Warning|Alert", says={"yes": ["there is a weather warning", "a storm warning was issued", "an alert is active"], "no": ["there are no warnings", "no alerts", "no storm warning"]}),
], canonical="city date sky high low wind humidity rain", required="city",
  multi=["{city}<, {date}>: {sky}<, {high} degrees>", "highs of {high} and lows of {low}", "{sky} in {city}<, up to {high} degrees>", "{low} to {high} degrees< in {city}>", "[on {date} |]it will be {sky} in {city}< with {high} degrees>"],
  headers=["WEATHER", "Forecast"], noise=["take a {~thing}", "yesterday it was {~adj}", "the sun rises at {~time}", "the lake is {~adj}"])

D("subscription", [
    S("plan", V.Enum(free="free|free plan|gratis", basic="basic|basic plan|starter", premium="premium|premium plan|pro|gold", enterprise="enterprise|enterprise plan|business plan"), "plan tier package", "Plan|Tier|Package", "+ on the {}", "the plan is {}", "I am on {}", "plan: {}", "you chose {}", "upgrade to {}"),
    S("email", V.EMAIL, "email account_email user", "Email|Account|User", "the account is {}", "+ for {}", "registered with {}", "email {}", "my login is {}", "account: {}"),
    S("price", V.Money(1, 400), "amount:price|monthly_fee|fee currency:currency", "Price|Fee|Monthly fee", "it costs {}", "{} per month", "the fee is {}", "+ for {} a month", "you are billed {}"),
    S("cycle", V.Enum(monthly="monthly|every month|month by month", yearly="yearly|annually|every year|annual"), "billing_cycle cycle interval", "Billing cycle|Cycle|Interval", "billed {}", "you pay {}", "cycle: {}", "+, billed {}"),
    S("start", V.Date(), "start_date started since", "Start|Since|Started", "it started on {}", "since {}", "+ since {}", "you joined on {}", "from {}"),
    S("renewal", V.Date(), "renewal_date renews_on next_payment", "Renewal|Renews|Next payment", "it renews on {}", "the next payment is on {}", "renewal date {}", "it will be renewed on {}"),
    S("cancelled", V.Flag(), "cancelled is_cancelled canceled", "Cancelled|Canceled", says={"yes": ["I want to cancel", "it has been cancelled", "please end my subscription", "the subscription was terminated"], "no": ["it is active", "the subscription continues", "not cancelled", "I want to keep it"]}),
    S("seats", V.Integer(1, 200), "seats licenses users", "Seats|Licenses|Users", "{} seats", "+ for {} users", "{} licences", "with {} users", "seats: {}"),
    S("service", V.COMPANY, "service provider product", "Service|Provider|Product", "subscription to {}", "+ with {}", "the service is {}", "provider: {}", "thank you for using {}"),
], canonical="service plan email price cycle start renewal cancelled", required="plan",
  multi=["{plan} plan< for {email}>< at {price}>< since {start}>", "your {plan} subscription< to {service}> renews on {renewal}<, {price}>", "{email}: {plan}<, {cycle}><, {price}>", "{service} charges {price}<, billed {cycle}>"],
  headers=["SUBSCRIPTION", "Your plan"], noise=["{~int} days of trial are left", "see {~url}", "you last logged in on {~date}", "the app has a new {~noun}"])

D("animal", [
    S("name", V.Text(V.first_name), "name pet_name animal", "Name|Pet name", "this is {}", "{} is looking for a home", "[his|her] name is {}", "meet {}", "name: {}", "we call [him|her] {}", "the animal is called {}"),
    S("species", V.Text(lambda c: c.rng.choice(W.PET)), "species kind animal_type", "Species|Kind|Animal", "it is a {}", "[he|she] is a {}", "species: {}", "+, a {}", "a lovely {}"),
    S("breed", V.Text(lambda c: c.rng.choice(["Labrador", "Beagle", "Poodle", "Siamese", "Persian", "Terrier", "Collie", "Husky", "Maine Coon", "Dachshund", "Bengal", "Corgi", V.invented(c.rng)])), "breed race", "Breed", "the breed is {}", "[he|she] is a {}", "breed: {}", "+ ({})"),
    S("age", V.Integer(1, 18), "age_years age", "Age|Age (years)", "[he|she] is {} years old", "age: {}", "{} years old", "+, {} years old", "{} years of age"),
    S("weight", V.Decimal(0.2, 60), "weight_kg weight", "Weight|Weight (kg)", "[he|she] weighs {} kg", "{} kg", "weight: {} kg"),
    S("sex", V.Enum(male="male|boy|he", female="female|girl|she"), "sex gender", "Sex|Gender", "sex: {}", "it is a {}", "+ ({})"),
    S("vaccinated", V.Flag(), "vaccinated is_vaccinated", "Vaccinated", says={"yes": ["[he|she] is vaccinated", "all shots are done", "vaccinations are up to date"], "no": ["[he|she] is not vaccinated", "the shots are missing", "no vaccination yet"]}),
    person_slot("owner", "owner keeper contact", "Owner|Keeper", "the owner is {}", "[he|she] belongs to {}", "{} owns [him|her]"),
    S("chip", V.CODE, "chip_number chip microchip", "Chip|Chip number|Microchip", "chip number {}", "the chip is {}", "+ (chip {})"),
], canonical="name species breed age weight sex vaccinated owner", required="name",
  multi=["{name} is a {species}<, {age} years old>", "{name}, a {age} year old {species}", "{owner}'s {species} {name}", "{name}< ({breed})><, {age} years><, {weight} kg>", "{owner} has a {species} called {name}"],
  headers=["ANIMAL", "Pet card", "Adoption"], noise=["[he|she] likes to {~verb}", "[he|she] loves children", "found in {~city}", "food costs {~money}"])

D("inspection", [
    S("site", V.VENUE, "site location building", "Site|Location|Building", "+ at {}", "we inspected {}", "the site is {}", "site: {}", "+ in {}", "the building is {}"),
    person_slot("inspector", "inspector checked_by examiner", "Inspector|Checked by|Examiner", "inspected by {}", "{} did the inspection", "the inspector was {}", "+ by {}", "{} visited us"),
    date_slot("date", "date inspection_date inspected_on", "Date|Inspected on|Inspection date", "inspected on {}", "the visit was on {}", "it took place on {}"),
    S("result", V.Enum(passed="passed|OK|pass|approved|successful", failed="failed|fail|not passed|rejected", conditional="conditional|passed with remarks|conditionally passed"), "result outcome", "Result|Outcome", "the result is {}", "result: {}", "outcome: {}", "it was {}", says={"passed": ["everything was in order", "no defects were found", "all good"], "failed": ["serious defects were found", "the site must be closed", "it did not meet the rules"], "conditional": ["small defects must be fixed first", "it is fine except for minor points"]}),
    S("score", V.Integer(0, 100, False), "score points", "Score|Points", "the score is {}", "{} points", "+ with {} points", "{} out of 100", "score: {}"),
    S("defects", V.Strings(V.clause_text, 1, 3), "defects issues findings", "Defects|Issues|Findings", "defects: {}", "findings: {}", "we found: {}", "issues: {}"),
    S("next", V.Date(), "next_inspection next_date follow_up", "Next inspection|Follow-up|Next", "the next inspection is on {}", "follow-up on {}", "to be checked again on {}", "next visit: {}"),
    S("report", V.CODE, "report_number report_id reference", "Report|Report number|Reference", "report {}", "report number {}", "+ (report {})", "reference {}"),
], canonical="report site inspector date result score defects next", required="site defects",
  multi=["{inspector} inspected {site}< on {date}>", "{site}, {date}: {result}", "report {report}<: {site}><, {result}>", "on {date} {inspector} visited {site}", "{site} was inspected on {date}< by {inspector}>< with {score} points>"],
  headers=["INSPECTION", "Inspection report"], noise=["the floor was {~adj}", "the visit took {~int} minutes", "the last one was on {~date}", "{~first} opened the door"])

D("car_repair", [
    person_slot("customer", "customer owner name", "Customer|Owner|Name", "the customer is {}", "+ for {}", "{} brought the car", "{} called", "my name is {}"),
    S("car", V.pick(W.CAR), "car vehicle model", "Car|Vehicle|Model", "it is a {}", "my {} needs a repair", "the car is a {}", "vehicle: {}", "I drive a {}", "+ with a {}"),
    S("problem", V.CLAUSE, "problem issue complaint work", "Problem|Issue|Complaint", "problem: {}", "the issue is this: {}", "[he|she] says: {}", "complaint: {}", "what is wrong: {}"),
    date_slot("date", "date dropped_off in_date", "Date|Dropped off|Brought in", "brought in on {}", "I can come on {}", "dropped off on {}"),
    S("ready", V.Date(), "ready_on ready_date pickup_date", "Ready|Pick up|Ready on", "it will be ready on {}", "you can pick it up on {}", "ready by {}", "collect it on {}"),
    S("cost", V.Money(20, 4000), "amount:cost|estimate|price currency:currency", "Cost|Estimate|Price", "it will cost {}", "the estimate is {}", "+ for {}", "we charge {}", "the repair costs {}"),
    S("parts", V.strings_of("brake pads|oil filter|battery|tyres|spark plugs|exhaust|clutch|windscreen|headlight|timing belt|radiator|alternator".split("|"), 1, 4), "parts replaced_parts", "Parts|Replaced", "parts: {}", "we replaced {}", "it needs new {}", "we have to change the {}", "ordered {}"),
    person_slot("mechanic", "mechanic technician", "Mechanic|Technician", "{} will repair it", "the mechanic is {}", "{} looked at it"),
    S("mileage", V.Integer(1000, 300000, False), "mileage mileage_km", "Mileage|Kilometres", "mileage {} km", "it has {} km", "{} km on the clock"),
    S("done", V.Flag(), "done completed repaired", "Done|Repaired", says={"yes": ["the repair is done", "it is fixed", "the car is ready"], "no": ["it is not done yet", "we are waiting for parts", "the repair has not started"]}),
], canonical="customer car problem date ready cost parts", required="car parts",
  multi=["{customer}'s {car} will be ready on {ready}", "{customer} brought [his|her] {car}< on {date}>", "{car}: {problem}", "the repair of the {car} costs {cost}<, ready on {ready}>", "{mechanic} replaced {parts}"],
  headers=["REPAIR", "Workshop order"], noise=["the garage closes at {~time}", "a loan car costs {~money}", "it was last here on {~date}"])

D("grant", [
    S("project", V.TITLE, "project project_title title", "Project|Title|Project title", "the project is called {}", "project: {}", "+ for the project {}", "our project {}", "\"{}\" will be funded", "{} has been approved"),
    person_slot("applicant", "applicant principal_investigator lead", "Applicant|Lead|Principal investigator", "the applicant is {}", "submitted by {}", "led by {}", "{} applied", "+ by {}"),
    S("institution", V.Text(lambda c: c.rng.choice(["University of ", "Institute of ", "College of "]) + V.city(c) if c.rng.random() < .7 else V.company(c)), "institution university organization", "Institution|University|Organization", "+ at {}", "the institution is {}", "+ from {}", "based at {}", "institution: {}"),
    S("amount", V.Money(1000, 900000, .02), "amount:amount|funding|budget currency:currency", "Amount|Funding|Budget", "the budget is {}", "+ with {}", "{} was granted", "it asks for {}", "funding: {}", "the sum requested is {}", "they received {}"),
    S("period", V.Dates(), "start:start_date|from end:end_date|until", "Period|Duration|Runs", "it runs {}", "+ {}", "period: {}", "the project lasts {}"),
    S("field", V.Text(lambda c: c.rng.choice(W.TOPIC)), "field subject discipline", "Field|Subject|Discipline", "the field is {}", "+ in {}", "field: {}", "research in {}"),
    S("status", V.Enum(approved="approved|granted|accepted|funded", rejected="rejected|declined|turned down|refused", pending="pending|under review|submitted"), "status decision", "Status|Decision", "it was {}", "status: {}", "decision: {}", "it is {}"),
    S("number", V.CODE, "grant_number number id", "Grant number|Grant|Number", "grant {}", "grant number {}", "+ (grant {})", "+ under number {}"),
], canonical="number project applicant institution amount period status", required="project",
  multi=["{applicant}< from {institution}> [received|was granted] {amount}< for {project}>", "{project}<, {applicant}><, {amount}>", "grant {number}: {project}< {period}>", "{institution} received {amount}< for {project}>"],
  headers=["GRANT", "Funding"], noise=["{~int} proposals were submitted", "the jury met on {~day}", "the next call opens on {~date}"])

D("address_card", [
    S("name", V.PERSON, "name recipient addressee", "Name|To|Recipient", "send it to {}", "deliver to {}", "+ to {}", "name: {}", "{} has moved", "the new address of {}", "addressed to {}"),
    S("address", V.Address(country=True), "street:street|street_address city:city|town postal_code:postal_code|zip|zip_code country:country", "Address|New address|Mailing address", "the address is {}", "+, {}", "{}", "moved to {}", "now living at {}", "address: {}", "send mail to {}", "the new address is {}", "we live at {}"),
    S("phone", V.PHONE, "phone tel mobile", "Phone|Tel|Mobile", "phone {}", "+, {}", "tel. {}", "call {}", "the number stays {}"),
    S("valid", V.Date(), "valid_from since from_date", "Valid from|Since", "valid from {}", "as of {}", "since {}", "+ from {}"),
    S("kind", V.Enum(home="home|private|at home", work="work|office|business"), "type kind", "Type|Kind", "this is a {} address", "type: {}", "+ ({})"),
], canonical="name address phone valid", required="name", nest={"address": {"address": None}},
  multi=["{name}\n{address}", "{name}, {address}<, {phone}>", "{name} lives at {address}", "{name} moved to {address}< on {valid}>", "$ship to:\n{name}\n{address}", "{address}\n{name}"],
  headers=["ADDRESS", "Change of address"], noise=["please update your files", "the old flat was {~adj}", "the bell says {~first}"])

D("sports", [
    S("athlete", V.PERSON, "athlete runner name participant", "Athlete|Runner|Name|Participant", "{} finished the race", "{} ran well", "the runner is {}", "athlete: {}", "+ for {}", "congratulations to {}", "{} took part"),
    S("event", V.EVENT, "event competition race", "Event|Competition|Race", "+ at the {}", "the {} was held", "event: {}", "+ in the {}", "competition: {}"),
    S("place", V.Integer(1, 90), "place rank position", "Place|Rank|Position", "place {}", "[he|she] came in at place {}", "rank: {}", "position {}", "+ on rank {}", "finished number {}"),
    S("time", V.Text(lambda c: f"{c.rng.randint(0, 5)}:{c.rng.randint(0, 59):02d}:{c.rng.randint(0, 59):02d}" if c.rng.random() < .6 else f"{c.rng.randint(9, 59)}:{c.rng.randint(0, 59):02d}.{c.rng.randint(0, 9)}"), "finish_time time result", "Time|Finish time|Result", "the time was {}", "+ in {}", "time: {}", "[he|she] needed {}", "+ with a time of {}"),
    S("distance", V.Decimal(0.4, 100, (0, 1, 0)), "distance_km distance", "Distance|Distance (km)", "{} km", "the distance is {} km", "+ over {} km", "a {} km run", "distance: {} kilometres"),
    S("club", V.COMPANY, "club team", "Club|Team", "the club is {}", "+ of {}", "[he|she] starts for {}", "club: {}", "+ for {}"),
    S("bib", V.Integer(1, 4000, False), "bib_number bib start_number", "Bib|Bib number|Start number", "bib {}", "start number {}", "+ (bib {})", "[he|she] wore number {}"),
    date_slot("date", "date race_date", "Date|Race day", "held on {}", "the race was on {}"),
    S("record", V.Flag(), "personal_best record", "Personal best|Record", says={"yes": ["a new personal best", "[his|her] best time ever", "a new record"], "no": ["not a personal best", "slower than last year", "no record this time"]}),
], canonical="athlete event date distance time place club bib", required="athlete",
  multi=["{athlete}< ({club})> finished the {event}< in {time}>", "{place}. {athlete}<, {club}> {time}", "{athlete} came {place}< in {time}>", "{athlete} ran {distance} km in {time}", "{event}<, {date}>: {athlete}<, {time}>", "{athlete} took place {place} at the {event}"],
  headers=["RESULT", "Race result"], noise=["{~int} runners started", "it was {~adj} weather", "{~first} dropped out", "the next race is on {~date}"])

D("song", [
    S("title", V.TITLE, "title song track", "Title|Song|Track", "the song is {}", "\"{}\" is playing", "track: {}", "listen to \"{}\"", "title: {}", "I love the song \"{}\"", "now playing: {}"),
    S("artist", V.Text(lambda c: V.person(c) if c.rng.random() < .5 else "The " + c.rng.choice(W.NOUN).capitalize() + "s" if c.rng.random() < .6 else V.invented(c.rng)), "artist band singer performer", "Artist|Band|Singer", "+ by {}", "the artist is {}", "sung by {}", "artist: {}", "{} sings it", "performed by {}"),
    S("album", V.TITLE, "album record", "Album|Record", "from the album {}", "album: {}", "+ on {}", "it is on the album \"{}\"", "+ from \"{}\""),
    S("year", V.Integer(1950, 2027, False), "year released release_year", "Year|Released", "from {}", "released in {}", "+ ({})", "year: {}"),
    S("length", V.Text(lambda c: f"{c.rng.randint(1, 9)}:{c.rng.randint(0, 59):02d}"), "length duration runtime", "Length|Duration", "it is {} long", "length: {}", "+ ({})", "duration {}"),
    S("genre", V.pick(W.GENRE), "genre style", "Genre|Style", "genre: {}", "the style is {}", "a {} song", "+, {}"),
    S("explicit", V.Flag(), "explicit explicit_lyrics", "Explicit", says={"yes": ["it has explicit lyrics", "not for children"], "no": ["the lyrics are clean", "no explicit content"]}),
    S("plays", V.Integer(10, 900000, False), "plays streams play_count", "Plays|Streams", "{} plays", "it was played {} times", "streams: {}", "+ with {} streams"),
], canonical="title artist album year genre length", required="title",
  multi=["\"{title}\" by {artist}< from {year}>", "{artist} - {title}< ({length})>", "{artist}: \"{title}\"<, {album}><, {year}>", "{title} - {artist}<, {year}>"],
  headers=["SONG", "Track info"], noise=["turn it up", "{~first} hates it", "I heard it in {~city}", "the concert was {~adj}"])

D("insurance_claim", [
    S("number", V.CODE, "claim_number claim_id number", "Claim|Claim number|Claim no.", "claim {}", "claim number {}", "+ (claim {})", "about claim {}", "the claim number is {}"),
    S("policy", V.CODE, "policy_number policy", "Policy|Policy number", "policy {}", "+ under policy {}", "my policy number is {}", "policy no. {}", "insured with number {}"),
    person_slot("holder", "policy_holder claimant name insured", "Policy holder|Claimant|Name|Insured", "my name is {}", "the claimant is {}", "{} filed a claim", "+ by {}", "{} reports a damage", "insured person: {}"),
    S("kind", V.Enum(fire="fire|burnt", theft="theft|stolen|burglary|robbery", water="water|flood|burst pipe", accident="accident|crash|collision", storm="storm|wind|hail"), "damage_type type cause", "Damage|Type|Cause", "damage by {}", "the cause was {}", "type: {}", "+ after a {}", "it was {}", says={"fire": ["the kitchen burned down", "there was a fire"], "theft": ["my bike was stolen", "somebody broke in"], "water": ["a pipe burst", "the cellar was flooded"], "accident": ["another car hit mine", "I had an accident"], "storm": ["the storm took the roof", "hail damaged the car"]}),
    date_slot("date", "incident_date date happened_on", "Date|Incident date|Happened on", "it happened on {}", "the damage occurred on {}", "+, {}"),
    S("amount", V.Money(50, 50000), "amount:amount|claimed_amount|damage currency:currency", "Amount|Claimed|Damage", "the damage is {}", "I claim {}", "+ of {}", "it will cost {}", "estimated at {}", "the repair costs {}"),
    S("police", V.Flag(), "police_report police_informed", "Police report|Police", says={"yes": ["the police were informed", "there is a police report", "I called the police"], "no": ["the police were not called", "there is no police report", "without police"]}),
    S("phone", V.PHONE, "phone contact_phone", "Phone|Tel", "call me at {}", "phone {}", "my number is {}"),
    S("place", V.CITY, "place city location", "Place|City", "+ in {}", "it happened in {}", "place: {}"),
], canonical="number policy holder kind date amount police phone", required="holder",
  multi=["{holder}< (policy {policy})> reports a damage of {amount}<, {date}>", "on {date} {holder} had a damage of {amount}", "claim {number}: {kind}<, {amount}><, {date}>", "it happened on {date} in {place}"],
  headers=["CLAIM", "Insurance claim"], noise=["photos are attached", "my neighbour {~first} saw it", "the door was {~adj}", "I have been a customer since {~year}"])

D("chat_order", [
    S("drink", V.Enum(coffee="coffee|espresso|cappuccino|latte", tea="tea|green tea|black tea", juice="juice|orange juice|apple juice", water="water|sparkling water", beer="beer|a pint"), "drink beverage", "Drink|Beverage", "I'd like {}", "+ with {}", "to drink: {}", "{} please", "drink: {}", "I'll have {}"),
    S("dish", V.Text(lambda c: f"{c.rng.choice(W.FOOD)} {c.rng.choice(W.DISH)}"), "dish food meal main", "Dish|Food|Meal|Main", "I'd like the {}", "one {} please", "I'll take the {}", "dish: {}", "can I have the {}?", "we want {}", "the {} for me"),
    S("count", V.Integer(1, 12), "quantity count portions", "Quantity|Portions|Count", "{} portions", "{} times please", "quantity: {}", "{} of them", "make it {}"),
    S("size", V.Enum(small="small|little|S", medium="medium|regular|M", large="large|big|L|extra large"), "size portion_size", "Size", "size: {}", "a {} one", "make it {}", "+ ({})", "{} please"),
    S("extras", V.strings_of(W.FOOD, 1, 3), "extras toppings sides", "Extras|Toppings|Sides", "+ with extra {}", "extras: {}", "add {}", "and {} on top", "toppings: {}"),
    S("takeaway", V.Flag(), "takeaway to_go take_out", "Takeaway|To go", says={"yes": ["to go please", "for takeaway", "I'll take it with me", "please wrap it up"], "no": ["we eat here", "for here", "I'll sit down", "eat in"]}),
    S("table", V.Integer(1, 40, False), "table table_number", "Table|Table number", "table {}", "we sit at table {}", "+ to table {}", "bring it to table {}"),
    S("name", V.Text(V.first_name), "name customer", "Name|Customer", "the name is {}", "+ for {}", "my name is {}", "it's for {}", "write {} on it"),
    S("time", V.Time(), "pickup_time time", "Time|Pick-up", "+ at {}", "I'll be there at {}", "ready at {} please", "pick up at {}"),
], canonical="name dish count size extras drink takeaway", required="dish extras",
  multi=["{count} {dish}< with extra {extras}>< and a {drink}>", "a {size} {dish}<, {drink}>", "{name} wants {dish}< with {extras}>", "{dish} and {drink}< for {name}>", "{count}x {dish}<, {size}>"],
  headers=["ORDER", "Kitchen order"], noise=["no onions please", "I pay by card", "is it spicy?", "the last one was {~adj}"])

D("property_tax", [
    S("parcel", V.CODE, "parcel_id parcel number", "Parcel|Parcel ID|Number", "parcel {}", "parcel number {}", "+ (parcel {})", "the parcel is {}"),
    person_slot("owner", "owner taxpayer name", "Owner|Taxpayer|Name", "the owner is {}", "owned by {}", "+ for {}", "addressed to {}", "{} has to pay"),
    S("address", V.Address(country=False), "street:street city:city postal_code:postal_code|zip", "Address|Property", "the property at {}", "+ at {}", "address: {}", "it concerns {}"),
    S("year", V.Integer(2000, 2030, False), "tax_year year", "Tax year|Year", "+ for {}", "tax year {}", "year: {}", "+ for the year {}"),
    S("value", V.Money(20000, 2000000, .02), "amount:assessed_value|value currency:currency", "Assessed value|Value", "assessed at {}", "the value is {}", "valued at {}", "assessed value: {}"),
    S("tax", V.Money(100, 20000), "amount:tax|tax_due|amount_due currency:currency", "Tax|Tax due|Amount due", "the tax is {}", "you owe {}", "tax due: {}", "please pay {}"),
    S("due", V.Date(), "due_date pay_by", "Due|Due date|Pay by", "due on {}", "pay by {}", "+ by {}", "the deadline is {}"),
    S("exempt", V.Flag(), "exempt is_exempt", "Exempt", says={"yes": ["the property is exempt", "no tax has to be paid", "tax exempt"], "no": ["the property is not exempt", "the full tax is due", "no exemption"]}),
], canonical="parcel owner address year value tax due", required="parcel",
  multi=["{owner} owes {tax}< for {year}>< by {due}>", "parcel {parcel}< at {address}>< is assessed at {value}>", "{owner}, {address}"],
  headers=["TAX NOTICE", "Property tax"], noise=["objections until {~date}", "our office opens at {~time}", "form {~code} is attached"])

D("energy", [
    S("meter", V.CODE, "meter_number meter meter_id", "Meter|Meter number|Meter no.", "meter {}", "meter number {}", "the meter is {}", "+ (meter {})", "reading of meter {}"),
    S("reading", V.Integer(10, 99000, False), "reading meter_reading value", "Reading|Meter reading|Value", "the reading is {}", "it shows {}", "reading: {}", "{} kWh", "the meter reads {}", "+ at {} kWh"),
    date_slot("date", "reading_date date read_on", "Date|Read on|Reading date", "read on {}", "I read it on {}", "taken on {}"),
    person_slot("customer", "customer name account_holder", "Customer|Name|Account holder", "my name is {}", "the customer is {}", "+ for {}", "{} sends the reading"),
    S("kind", V.Enum(electricity="electricity|power|current", gas="gas|natural gas", water="water|cold water", heat="heat|heating|district heating"), "type utility energy_type", "Type|Utility", "type: {}", "it is for {}", "+ for {}", "the {} meter"),
    S("price", V.Money(5, 900), "amount:amount|cost|price currency:currency", "Amount|Cost", "the cost is {}", "you pay {}", "+ for {}", "the bill is {}"),
    S("estimated", V.Flag(), "estimated is_estimate", "Estimated", says={"yes": ["the value was estimated", "it is an estimate", "nobody was at home, so we estimated it"], "no": ["it was read on site", "an actual reading", "not estimated"]}),
    S("address", V.Address(country=False), "street:street city:city postal_code:postal_code|zip", "Address", "+ at {}", "the address is {}", "address: {}"),
], canonical="meter kind reading date customer price estimated", required="meter",
  multi=["meter {meter} shows {reading}< on {date}>", "{customer}: meter {meter}<, {reading} kWh><, {date}>", "the {kind} meter {meter} reads {reading}", "{date}: {reading} kWh"],
  headers=["METER READING", "Energy"], noise=["the last value was {~int}", "the cellar is {~adj}", "please call {~phone}", "the contract ends on {~date}"])

# --- held out ------------------------------------------------------------------------------------------------------

D("vet_visit", [
    S("pet", V.Text(V.first_name), "pet_name pet animal", "Pet|Pet name|Animal", "the pet is called {}", "{} came to the clinic", "+ with {}", "pet: {}", "I am bringing {}", "{} is not well"),
    S("species", V.Text(lambda c: c.rng.choice(W.PET)), "species kind", "Species|Kind", "it is a {}", "species: {}", "+, a {}", "my {} is ill"),
    person_slot("owner", "owner owner_name client", "Owner|Client", "the owner is {}", "{} is the owner", "+, owned by {}", "{} brought the animal"),
    person_slot("vet", "vet veterinarian doctor", "Vet|Veterinarian", "the vet is {}", "seen by {}", "examined by {}", "{} did the check"),
    date_slot("date", "visit_date date", "Date|Visit date", "the visit was on {}", "seen on {}"),
    S("reason", V.pick(W.SYMPTOM), "reason symptom", "Reason|Symptom", "the reason was {}", "+ because of {}", "+ for {}", "symptom: {}"),
    S("weight", V.Decimal(0.3, 60), "weight_kg weight", "Weight|Weight (kg)", "weight {} kg", "it weighs {} kg", "+, {} kg"),
    S("cost", V.Money(15, 900), "amount:cost|fee currency:currency", "Cost|Fee", "the visit cost {}", "+ for {}", "the fee was {}"),
    S("vaccinated", V.Flag(), "vaccinated", "Vaccinated", says={"yes": ["it is vaccinated", "all vaccinations are done"], "no": ["it is not vaccinated", "vaccinations are missing"]}),
], canonical="pet species owner vet date reason weight cost", required="pet",
  multi=["{owner} brought {pet}< the {species}>< on {date}>", "{pet}, a {species}<, {weight} kg>", "{vet} examined {pet}< on {date}>"], headers=["VET VISIT"], noise=["next visit in {~int} weeks", "the dog barked"])

D("rental", [
    S("item", V.PRODUCT, "item rented_item equipment", "Item|Equipment|Rented item", "I want to rent the {}", "the rented item is the {}", "item: {}", "we lend you the {}", "+ for the {}"),
    person_slot("renter", "renter customer name", "Renter|Customer|Name", "the renter is {}", "rented by {}", "{} rents it", "+ to {}"),
    S("period", V.Dates(), "start:start_date end:end_date", "Period|Dates", "rented {}", "+ {}", "the period is {}"),
    S("deposit", V.Money(10, 500), "amount:deposit currency:currency", "Deposit", "the deposit is {}", "+ with a deposit of {}", "leave {} as deposit"),
    S("rate", V.Money(5, 300), "amount:daily_rate|rate currency:currency", "Daily rate|Rate", "{} per day", "the daily rate is {}", "it costs {} a day"),
    S("returned", V.Flag(), "returned is_returned", "Returned", says={"yes": ["it has been returned", "the item is back"], "no": ["it has not been returned", "still out"]}),
    S("phone", V.PHONE, "phone", "Phone", "phone {}", "call {}", "the number is {}"),
], canonical="item renter period deposit rate returned phone", required="item",
  multi=["{renter} rented the {item}< {period}>", "{item}<, {rate} per day>"], headers=["RENTAL"], noise=["please clean it", "it is {~adj}"])

D("donation", [
    person_slot("donor", "donor donor_name giver", "Donor|Giver", "the donor is {}", "{} donated", "given by {}", "+ from {}", "thank you, {}"),
    S("amount", V.Money(5, 9000), "amount:amount|donation currency:currency", "Amount|Donation", "+ of {}", "{} was donated", "a gift of {}", "the donation is {}", "we received {}"),
    date_slot("date", "date donated_on", "Date|Donated on", "donated on {}", "received on {}"),
    S("charity", V.COMPANY, "charity organization recipient", "Charity|Organization", "+ to {}", "the charity is {}", "in favour of {}", "{} says thank you"),
    S("purpose", V.TITLE, "purpose campaign project", "Purpose|Campaign", "+ for {}", "the purpose is {}", "campaign: {}"),
    S("anonymous", V.Flag(), "anonymous is_anonymous", "Anonymous", says={"yes": ["the donor wants to stay anonymous", "please do not publish the name"], "no": ["the name may be published", "not anonymous"]}),
    S("email", V.EMAIL, "email", "Email", "the receipt goes to {}", "email {}", "write to {}"),
], canonical="donor amount date charity purpose anonymous email", required="donor",
  multi=["{donor} donated {amount}< to {charity}>< on {date}>", "{charity} received {amount}< from {donor}>"], headers=["DONATION"], noise=["every bit helps", "{~int} people gave something"])

D("match", [
    S("home", V.Text(lambda c: V.city(c) + c.rng.choice([" United", " City", " FC", "", " Tigers", " Wolves"])), "home_team home team_a", "Home|Home team", "the home team is {}", "{} played at home", "home: {}"),
    S("away", V.Text(lambda c: V.city(c) + c.rng.choice([" Rovers", " Town", " SC", "", " Lions", " Bears"])), "away_team away team_b", "Away|Away team", "the away team is {}", "{} came as guests", "away: {}", "+ against {}"),
    S("home_score", V.Integer(0, 9, False), "home_score home_goals", "Home score", "the home team scored {}", "home score: {}"),
    S("away_score", V.Integer(0, 9, False), "away_score away_goals", "Away score", "the guests scored {}", "away score: {}"),
    date_slot("date", "date match_date", "Date|Match day", "played on {}", "the match was on {}"),
    S("stadium", V.VENUE, "stadium venue", "Stadium|Venue", "+ at {}", "+ in {}", "the stadium was {}"),
    person_slot("referee", "referee official", "Referee", "the referee was {}", "{} was the referee"),
    S("crowd", V.Integer(100, 80000, False), "attendance spectators", "Attendance|Spectators", "{} people watched", "attendance: {}", "in front of {} spectators"),
], canonical="home away home_score away_score date stadium referee crowd", required="home",
  multi=["{home} beat {away} {home_score}-{away_score}", "{home} - {away} {home_score}:{away_score}<, {date}>", "{home} played {away}< on {date}>< at {stadium}>"], headers=["MATCH"], noise=["it rained", "{~first} got a red card"])

D("lost_item", [
    S("item", V.PRODUCT, "item object lost_item", "Item|Object", "I lost my {}", "the item is a {}", "lost: {}", "item: {}", "somebody found a {}"),
    S("colour", V.COLOUR, "color colour", "Color|Colour", "the colour is {}", "it is {}", "+ in {}"),
    date_slot("date", "date lost_on", "Date|Lost on", "lost on {}", "it happened on {}", "found on {}"),
    S("place", V.VENUE, "place location", "Place|Location", "+ at {}", "+ in {}", "the place was {}"),
    person_slot("owner", "owner name reported_by", "Owner|Name", "my name is {}", "it belongs to {}", "{} is looking for it"),
    S("phone", V.PHONE, "phone contact", "Phone|Contact", "call {}", "my number is {}", "phone {}"),
    S("reward", V.Money(5, 500), "amount:reward currency:currency", "Reward", "the reward is {}", "I offer {}", "{} for the finder"),
    S("found", V.Flag(), "found is_found", "Found", says={"yes": ["it has been found", "it turned up again"], "no": ["it has not been found", "still missing"]}),
], canonical="item colour date place owner phone reward found", required="item",
  multi=["I lost my {item}< on {date}>< at {place}>", "{owner} lost a {item}< in {place}>< on {date}>", "lost: {colour} {item}<, {place}>"], headers=["LOST AND FOUND"], noise=["it is very {~adj}", "please help"])
