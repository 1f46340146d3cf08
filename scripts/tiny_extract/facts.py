"""A catalogue of facts that no domain owns: key names, what a form calls them and how a sentence says them.

A line is `keys | labels | phrases`, under the class of its value. Schemas are drawn from these facts and from the slots of
the trained domains. So the keys of a record come in thousands of combinations.
"""

CATALOGUE = {
    # Somebody or an organisation.
    "party": """
customer customer_name client buyer purchaser | customer, client, buyer, sold to, name | ordered by {}; bought by {}; {} ordered it; sold to {}; billed to {}; the customer is {}; {} is the buyer; issued to {}; made out to {}; {} placed the order
supplier vendor seller provider | supplier, vendor, seller, from | supplied by {}; we bought it from {}; issued by {}; the supplier is {}; {} sent the goods; {} is the seller; delivered by {}
payer paid_by | payer, paid by | paid by {}; {} paid; {} settles it; the money came from {}
payee beneficiary | payee, payable to, beneficiary | payable to {}; the money goes to {}; {} gets the money; pay it to {}
sender from shipper | sender, from, shipper | sent by {}; {} sent it; the sender is {}; it comes from {}
recipient to receiver consignee addressee | recipient, to, deliver to, receiver | sent to {}; addressed to {}; {} receives it; it goes to {}; the recipient is {}
owner proprietor | owner, owned by | owned by {}; it belongs to {}; the owner is {}; {} owns it
applicant | applicant, application of | {} applied; the application came from {}; the applicant is {}
contractor installer | contractor, carried out by | carried out by {}; {} did the work; the contractor is {}
sponsor | sponsor, sponsored by | sponsored by {}; {} sponsors it; {} is the sponsor
organizer organiser host | organizer, host, organised by | organised by {}; hosted by {}; {} hosts it; {} runs it
insurer insurance_company | insurer, insured with | insured with {}; the insurer is {}; {} covers it
claimant | claimant, claim of | {} filed the claim; the claimant is {}
winner | winner, won by | won by {}; {} won; the winner is {}; first prize went to {}
manufacturer maker brand | manufacturer, maker, made by | made by {}; {} makes it; from the workshop of {}; the maker is {}
lender | lender, loan from | lent by {}; the loan is from {}; {} lends the money
subscriber account_holder member | subscriber, member, account holder | the account is in the name of {}; the subscriber is {}; {} is a member
publisher | publisher, published by | published by {}; {} brought it out; the publisher is {}
reporter reported_by | reporter, reported by | reported by {}; {} reported it; {} raised this
requester requested_by | requester, requested by | requested by {}; {} asked for it; {} wants it
approver approved_by | approver, approved by | approved by {}; {} signed it off; {} gave the green light
""",
    "person": """
name full_name person | name, full name | the name is {}; it is about {}; my name is {}; {} here
contact contact_person contact_name | contact, contact person | please ask for {}; contact {}; your contact is {}; for the attention of {}; talk to {}
author writer written_by | author, by, written by | written by {}; {} wrote it; by {}; the author is {}
manager boss supervisor | manager, supervisor, head | managed by {}; {} is in charge; the manager is {}; led by {}; {} leads the team
assistant | assistant | {} assists; the assistant is {}
employee worker staff_member | employee, staff member | {} works here; the employee is {}; staff member {}
candidate | candidate | {} applied for the post; the candidate is {}; we interviewed {}
teacher instructor trainer coach | teacher, instructor, trainer, coach | taught by {}; {} teaches it; with {} as teacher; {} is the trainer
student pupil | student, pupil | the student is {}; {} is enrolled; {} takes part
guest guest_name visitor | guest, visitor | {} is our guest; we expect {}; {} stays with us; {} visits us
patient patient_name | patient | {} is the patient; we saw {}; {} was examined
doctor physician | doctor, physician, seen by | seen by {}; {} treats the patient; the doctor is {}
driver | driver | {} drives; driven by {}; the driver is {}; {} was at the wheel
passenger traveller | passenger, traveller | {} travels; the passenger is {}; {} is on board
technician engineer mechanic | technician, engineer, fitter | {} came to repair it; the technician is {}; repaired by {}; {} looked at it
inspector auditor | inspector, auditor, checked by | inspected by {}; {} checked it; the inspector is {}
agent sales_rep representative | agent, representative, served by | {} handles it; handled by {}; the agent is {}; served by {}
witness | witness | witnessed by {}; {} saw it; the witness is {}
speaker | speaker, talk by | {} speaks; a talk by {}; the speaker is {}
director | director, directed by | directed by {}; {} directs; the director is {}
photographer | photographer, photo by | photo by {}; {} took the pictures
architect designer designed_by | architect, designer, designed by | designed by {}; {} drew the plans; the architect is {}
chair chairperson moderator | chair, moderator, chaired by | chaired by {}; {} took the chair; moderated by {}
secretary minutes_by | secretary, minutes | {} took the minutes; the minutes are by {}
captain | captain | captained by {}; {} is captain
artist performer singer | artist, performer | performed by {}; {} plays; {} sings
nurse | nurse | {} is on duty; the nurse is {}
parent guardian | parent, guardian | {} is the guardian; the parent is {}
emergency_contact | emergency contact, in an emergency | in an emergency call {}; the emergency contact is {}
assignee assigned_to responsible | assignee, assigned to, responsible | assigned to {}; {} takes care of it; {} is responsible; it is with {}
caller | caller | {} called; a call from {}; {} was on the phone; {} rang
""",
    "company": """
company company_name firm organization organisation business | company, firm, organisation, business | of {}; from {}; at {}; on behalf of {}; the company is {}; {} is the firm
employer workplace | employer, works for, works at | works for {}; works at {}; employed by {}; with {}; the employer is {}
bank bank_name | bank | at {}; the account is at {}; the bank is {}; through {}
carrier shipping_company courier | carrier, courier, shipped with | shipped with {}; {} delivers it; by {}; the courier is {}
airline | airline, operated by | operated by {}; with {}; flown by {}
hotel hotel_name | hotel | at the {}; staying at {}; the hotel is {}
restaurant | restaurant | at {}; a table at {}; the restaurant is {}
school university college | school, university, college | at {}; studies at {}; a graduate of {}
hospital clinic | hospital, clinic | at {}; admitted to {}; the clinic is {}
shop store shop_name | shop, store | bought at {}; from {}; the shop is {}
club team | club, team | plays for {}; of {}; the club is {}
parent_company group | group, parent company | part of {}; belongs to {}; a subsidiary of {}
""",
    "city": """
city town location place | city, town, location, place | in {}; at {}; based in {}; the city is {}; located in {}; near {}
destination to_city deliver_to ship_to | destination, ship to, deliver to, to | to {}; it goes to {}; bound for {}; deliver it to {}; send it to {}; destination {}
origin from_city departure_city | origin, from, departure | from {}; it leaves from {}; it starts in {}; sent from {}
branch office site | branch, office, site | our {} office; the branch in {}; at the {} site
birthplace place_of_birth | birthplace, place of birth | born in {}; a native of {}
hometown residence lives_in | residence, home, lives in | lives in {}; resident in {}; from {}
venue_city host_city | host city, held in | held in {}; it takes place in {}
station stop | station, stop | at {} station; stops at {}; change at {}
region area district | region, area, district | in the {} area; the region is {}
""",
    "country": """
country nation | country | in {}; from {}; the country is {}
nationality_country citizenship country_of_origin | country of origin, citizen of, made in | made in {}; a citizen of {}; comes from {}
""",
    "code": """
id identifier number no | ID, number, no., # | number {}; no. {}; under number {}; #{}; it is {}
order_id order_number order_no order | order, order number, order no., order ID | order {}; the order {}; order number {}; about {}; under order {}; {} was ordered
invoice_number invoice_no invoice_id invoice | invoice, invoice no., invoice number | invoice {}; bill {}; the invoice {}; with invoice number {}
reference ref reference_number | ref, reference, our ref | ref {}; reference {}; quoting {}; please quote {}; under reference {}
tracking_number tracking tracking_code | tracking, tracking number, tracking code | tracking {}; track it with {}; the tracking number is {}
booking_code booking_reference confirmation_number reservation | booking, confirmation, reservation | booking {}; confirmation {}; reservation {}; booked under {}
customer_number account_number client_id customer_id | customer no., account, client ID | customer no. {}; account {}; client number {}
ticket_number case_number case_id ticket | ticket, case, case no. | ticket {}; case {}; logged as {}; opened as {}
serial_number serial | serial, serial number, S/N | serial {}; S/N {}; with the serial number {}
sku article_number part_number item_code | SKU, article, part no., item code | article {}; part {}; item {}; SKU {}
contract_number contract | contract, contract no. | contract {}; under contract {}
policy_number policy | policy, policy no. | policy {}; under policy {}
license_plate plate registration | plate, registration | with the plate {}; registered as {}
room room_number | room | room {}; in room {}
flight flight_number service_number | flight, service | flight {}; service {}; on {}
gate bay terminal | gate, bay, terminal | gate {}; from terminal {}; at bay {}
passport_number document_number id_number | passport, document no., ID no. | passport {}; document {}
batch batch_number lot | batch, lot | batch {}; lot {}; from lot {}
version release | version, release | version {}; release {}; running {}
project_code project_id cost_center | project code, cost center | charged to {}; project {}; booked on {}
voucher coupon discount_code | voucher, coupon, code | with the code {}; voucher {}; coupon {}
asset_tag device_id machine_id | asset, device, machine | device {}; machine {}; asset {}
""",
    "money": """
total total_amount amount sum value | total, amount, sum, total amount, value | for {}; total {}; worth {}; it comes to {}; the sum is {}; at {}; over {}; {} in all; {} altogether; we agreed on {}; I paid {}; the amount is {}
price unit_price cost | price, cost, unit price | for {}; at {}; it costs {}; priced at {}; the price is {}; {} each; going for {}
fee charge entry_fee admission | fee, charge, admission | the fee is {}; a charge of {}; {} to enter; costs {} per head
discount rebate | discount, rebate | less {}; a discount of {}; {} off
tax vat | tax, VAT | plus {} tax; {} VAT; of which {} is tax
shipping shipping_cost delivery_fee freight | shipping, delivery, freight, postage | {} for shipping; delivery {}; plus {} freight
balance outstanding amount_due open_amount | balance, outstanding, amount due | {} still open; a balance of {}; {} outstanding; you owe {}
salary wage annual_salary | salary, wage, pay | a salary of {}; earns {}; pays {} a year
budget | budget | a budget of {}; {} set aside; up to {} may be spent
refund refund_amount | refund | a refund of {}; {} back; {} was returned
tip gratuity | tip | a tip of {}; {} as a tip
fine penalty | fine, penalty | a fine of {}; fined {}; a penalty of {}
rate hourly_rate | rate, hourly rate | at {} an hour; {} per hour; the rate is {}
turnover revenue sales | revenue, turnover, sales | sales of {}; a turnover of {}; {} in revenue
subtotal net net_amount | subtotal, net | net {}; {} before tax; subtotal {}
monthly_payment instalment | instalment, monthly payment | {} a month; in instalments of {}
valuation insured_value estimate | estimate, insured value | estimated at {}; insured for {}; valued at {}
""",
    "date": """
date day | date, dated, day | on {}; dated {}; of {}; the date is {}; it was {}
due_date due deadline pay_by | due, due date, deadline, pay by | due {}; by {}; due on {}; no later than {}; the deadline is {}
order_date ordered_on purchase_date | ordered, order date, bought on | ordered on {}; bought on {}; placed on {}
delivery_date delivered_on eta arrival_date arrival | delivery, ETA, arrival, delivered | arrives {}; delivered on {}; expected on {}; it will be there on {}
start_date start from_date begins | start, starts, begins, from | starts {}; from {}; begins on {}; starting {}
end_date end until ends valid_until expires expiry_date | end, ends, until, valid until, expires | until {}; ends {}; valid until {}; it expires on {}
birth_date birthday date_of_birth dob | born, date of birth, birthday | born {}; born on {}; the birthday is {}
created created_at opened_on reported_on | created, opened, reported on | created {}; opened on {}; reported on {}
signed_on signature_date | signed, signed on | signed on {}; signed {}
check_in arrival_day | check-in, arrival | checks in on {}; arriving {}; from {}
check_out departure_day departure | check-out, departure | checks out on {}; leaving {}; departs {}
last_service last_checked inspected_on | last service, last checked | last serviced on {}; last checked {}
next_visit follow_up next_appointment | next visit, follow-up | next visit {}; come back on {}; follow-up on {}
published release_date issued | published, released, issued | published {}; released on {}; out on {}; issued on {}
""",
    "time": """
time start_time at | time, at, start | at {}; from {} on; starts at {}; the time is {}
end_time closing_time until_time | end, closes, until | until {}; closes at {}; ends at {}
departs departure_time leaves | departs, departure, leaves | leaves at {}; departs {}; departing at {}
arrives arrival_time | arrives, arrival | arrives at {}; arriving at {}; in at {}
opening_time opens | opens, open from | opens at {}; open from {}
pickup_time collection_time | pickup, collection | collected at {}; ready at {}; pick-up at {}
""",
    "email": """
email email_address mail contact_email | e-mail, email, mail | at {}; write to {}; mail {}; e-mail {}; reach us at {}; ({})
billing_email invoice_email | billing e-mail, invoices to | invoices go to {}; bill {}
""",
    "phone": """
phone phone_number telephone tel mobile contact_number | phone, tel, mobile, telephone | call {}; phone {}; tel. {}; on {}; ring {}; reachable on {}; ({})
fax | fax | fax {}; by fax {}
""",
    "url": """
url website link web_address homepage | website, link, web, URL | see {}; more at {}; visit {}; online at {}
""",
    "street": """
street address street_address | address, street | at {}; lives at {}; the address is {}; {} is the address
""",
    "postcode": """
postal_code zip postcode zip_code | postcode, ZIP, postal code | {}; postcode {}; ZIP {}
""",
    "product": """
product item article product_name | product, item, article | the {}; a {}; one {}; {} was ordered; about the {}; the product is {}
device equipment machine_name | device, equipment | the {}; a {}; our {}; the device is a {}
gift prize | gift, prize | a {} as a gift; the prize is a {}
material part spare_part | material, part | a {} is needed; made with a {}; replace the {}
""",
    "title": """
title headline heading | title, headline | "{}"; called {}; titled {}; {} is the title
book book_title work | book, work | the book {}; reading {}; a copy of {}
project project_name | project | project {}; the {} project; for {}
course course_title class subject | course, class | the course {}; in {}; the class {}
film movie show play | film, show | the film {}; watching {}; a showing of {}
album song track | album, song | the song {}; the album {}
""",
    "event": """
event event_name occasion | event, occasion | the {}; for the {}; at the {}; our {}
conference meeting topic | meeting, conference, topic | the {}; a {}; joins the {}
""",
    "place": """
venue place hall location | venue, place, where | at {}; in {}; the venue is {}; held at {}
warehouse depot | warehouse, depot | stored at {}; from the depot {}
building facility | building, facility | the building is {}; inside {}
""",
    "role": """
role job_title position title occupation profession | role, position, job title, occupation | as {}; the {}; works as {}; a {}; {} by trade
department_role function | function | in the role of {}; as {}
""",
    "department": """
department division unit_name | department, division | in {}; the {} department; from {}; {} takes it
""",
    "skill": """
language | language, in | in {}; the language is {}; speaks {}
""",
    "colour": """
color colour paint | colour, color | in {}; the {} one; painted {}; the colour is {}
""",
    "note": """
reason issue problem complaint | reason, issue, problem | because the {}; the problem: {}; the reason: {}; reason given: {}
summary description subject details | subject, summary, description, re | it says: {}; in short: {}; subject: {}; {}
note comment remark notes | note, comment, remark, notes | note: {}; please note: {}; remark: {}
request wish special_request | request, wish | asked for this: {}; request: {}; wish: {}
""",
}

# How many of something, by the noun that the key and the text share.
COUNTS = """guests people persons visitors participants attendees seats tickets rooms beds bedrooms bathrooms floors pages chapters
copies units pieces boxes parcels bags pallets items bottles cans students teachers players teams members employees desks windows doors
passengers children adults nights days weeks months years hours minutes votes points goals errors warnings users devices licenses
servers files photos questions answers lessons stops tables chairs plates portions servings calls complaints orders returns steps laps
rounds stars sets trees animals eggs cups attempts vacancies volunteers exhibits parking_spaces""".split()

# Measures: keys, unit as written, phrases, range, decimals.
MEASURES = """
elevation_m elevation altitude | m, metres | {} m up; at {} m; an elevation of {} m | 100 3000 0
length_km distance_km distance length | km, kilometres | {} km long; {} km; a distance of {} km; over {} km | 1 400 1
weight_kg weight gross_weight | kg, kilos, kilograms | {} kg; weighs {} kg; it weighs {} kg | 1 900 1
height_cm height | cm, centimetres | {} cm tall; {} cm high; a height of {} cm | 20 300 0
width_cm width | cm | {} cm wide; a width of {} cm | 5 300 0
depth_m depth | m, metres | {} m deep; a depth of {} m | 1 90 1
area_m2 area floor_area size | m2, square metres, sqm | {} square metres; {} sqm; an area of {} m2 | 15 900 0
temperature_c temperature | °C, degrees | {} °C; {} degrees; a temperature of {} degrees | 1 40 1
speed_kmh speed | km/h | {} km/h; at {} km/h; a speed of {} km/h | 20 200 0
volume_l volume capacity | l, litres | {} litres; holds {} l; {} l | 1 200 1
power_w power | W, watts | {} W; {} watts; draws {} watts | 5 3000 0
duration_minutes duration minutes length_minutes | min, minutes | {} minutes; lasts {} min; takes {} minutes; {} minutes long | 5 240 0
duration_hours hours estimated_hours | h, hours | {} hours; takes {} hours; allow {} h | 1 30 1
dose_mg dose dosage | mg | {} mg; a dose of {} mg | 5 900 0
humidity_percent humidity | %, percent | {} % humidity; humidity at {} percent | 20 99 0
discount_percent discount_rate | %, percent | {} % off; {} percent discount | 5 60 0
interest_rate rate_percent | %, percent | at {} %; {} percent interest | 1 12 2
score grade points_scored | points | scored {}; a score of {}; {} points | 1 100 1
age age_years | years | {} years old; aged {}; age {} | 1 99 0
mileage_km mileage odometer | km | {} km on the clock; a mileage of {} km; has run {} km | 900 250000 0
storage_gb disk_gb memory_gb | GB | {} GB; with {} GB | 8 900 0
price_per_kg kilo_price | per kg | {} per kg; {} a kilo | 1 90 2
warranty_months warranty | months | {} months warranty; guaranteed for {} months | 6 60 0
"""

# Yes or no: keys, what is true or false of it, as a noun (with, without) or as a word after "is".
FLAGS = """
breakfast_included breakfast includes_breakfast | noun breakfast
parking has_parking free_parking | noun parking
wifi has_wifi internet | noun wifi
terrace has_terrace | noun a terrace
insured insurance has_insurance | noun insurance
garden has_garden | noun a garden
balcony has_balcony | noun a balcony
lift elevator has_elevator | noun a lift
warranty_included has_warranty | noun warranty
installation includes_installation | noun installation
gift_wrap gift_wrapping | noun gift wrapping
delivery home_delivery | noun delivery
lunch_included lunch | noun lunch
towels linen_included | noun linen
children_allowed kids_welcome | noun children
air_conditioning has_ac | noun air conditioning
urgent is_urgent | word urgent
fragile is_fragile | word fragile
paid is_paid | word paid
confirmed is_confirmed | word confirmed
vegetarian is_vegetarian | word vegetarian
vegan is_vegan | word vegan
refundable is_refundable | word refundable
signed is_signed | word signed
approved is_approved | word approved
available in_stock is_available | word available
recurring is_recurring | word recurring
damaged is_damaged | word damaged
completed done finished is_done | word finished
active is_active | word active
verified is_verified | word verified
member is_member | word a member
used second_hand | word used
remote is_remote | word remote
full_time is_full_time | word full-time
married is_married | word married
smoker smoking | word a smoker
sold_out is_sold_out | word sold out
public is_public | word public
taxable is_taxable | word taxable
furnished is_furnished | word furnished
"""

# Choices: keys, members (a slash separates the value and other words for it), what follows "is" or stands alone.
CHOICES = """
status state order_status | new, open, paid, shipped, delivered, cancelled/canceled/called off, pending, returned, closed, on hold, refunded, confirmed, processing/in process, draft, sent, overdue, complete, packed
priority urgency | low/minor, medium/normal, high/urgent, critical
size | small, medium, large, extra large, S, M, L, XL
weekday day day_of_week | Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday
payment_method payment paid_with | cash, card/credit card, transfer/bank transfer, invoice, paypal/PayPal, cheque
difficulty level | easy, moderate, hard/difficult, beginner/for beginners, intermediate, advanced, expert
condition quality | new, used, good, fair, poor, excellent, damaged/broken, refurbished
color colour | red, blue, green, black, white, grey, yellow, orange, brown, purple
delivery shipping_method | pickup/pick-up/collection, courier, post/by post, express, standard, freight
sentiment mood | positive/happy, negative/unhappy, neutral
fuel fuel_type | petrol, diesel, electric, hybrid, gas
season | spring, summer, autumn, winter
department team | sales, support, finance, engineering, marketing, legal, logistics, research
result outcome verdict | pass/passed, fail/failed, inconclusive, won, lost, draw/drawn
category type kind | hardware, software, furniture, food, clothing, books, tools, toys, service, travel
gender sex | male, female
meal meal_type | breakfast, lunch, dinner, snack
room_type | single, double, twin, suite, family
travel_class class cabin | economy, business, first
material | wood, steel, glass, plastic, cotton, leather, paper, stone
unit | kg, g, piece, box, litre, metre, hour
frequency interval billing_cycle | daily, weekly, monthly, quarterly, yearly
severity risk risk_level | info, low, minor, major, severe, critical
language | English, German, French, Spanish, Italian, Dutch, Polish
currency | EUR, USD, GBP, CHF, JPY
channel source | email/e-mail, phone, chat, web, walk-in
role user_role | admin, editor, viewer, guest, owner
weather sky | sunny, cloudy, rainy, windy, foggy, snowy/snow
stage phase | planning, design, build, test, review, release, done
direction | north, south, east, west
shift | morning, day, evening, night
vehicle_type vehicle | car, van, truck, bus, bike, motorcycle, train
animal species | dog, cat, rabbit, horse, cow, sheep, goat
employment_type contract_type | permanent, temporary, internship, freelance, part-time, full-time
"""

# Lists of texts: keys, class of the items, phrases.
LISTS = """
attendees participants people names | person | with {}; present: {}; attended by {}; {} took part; those present: {}
speakers guests performers | person | speakers: {}; with talks by {}; we hear {}
authors writers | person | by {}; written by {}; authors: {}
cities stops locations offices | city | in {}; via {}; it stops in {}; offices in {}
items products goods articles | product | items: {}; we need {}; they bought {}; included are {}
skills requirements | skill | skills: {}; knows {}; required: {}; experience with {}
ingredients contents | food | ingredients: {}; made with {}; it contains {}; you need {}
tags keywords labels | noun | tags: {}; tagged {}; keywords {}; filed under {}
topics subjects agenda | topic | topics: {}; it covers {}; on the agenda: {}; about {}
companies partners clients | company | partners: {}; together with {}; clients include {}
colors colours | colour | comes in {}; colours: {}; available in {}
symptoms complaints | symptom | complains of {}; symptoms: {}; reports {}
medications medicines | medicine | takes {}; prescribed: {}; on {}
languages | language | speaks {}; languages: {}; fluent in {}
emails recipients cc | email | copies to {}; cc {}; sent to {}
codes references part_numbers | code | parts {}; references {}; codes: {}
genres styles | genre | genres: {}; a mix of {}
departments teams | department | departments: {}; together with {}
"""

# Lists of objects: key, parts (key=class). The parts are said in one of a few orders.
RECORDS = """
items line_items order_lines products positions lines | product product_name item description name article=product | quantity qty amount count pieces=count | price unit_price cost=price?
parts materials goods stock | part name material item=product | quantity qty number=count
contacts people members staff | name full_name person=person | role position title job=role
contacts team participants | name person=person | email mail e_mail=email?
speakers guests attendees | name speaker=person | company organization from=company?
stops stations route | city station place stop=city | time arrival at=time
payments transactions entries expenses | description text article=product | amount sum value=price
payments invoices bills | number id reference invoice=code | amount total sum=price | date due=date?
events appointments meetings | title name event=event | date day on=date
results scores ranking | name player athlete=person | score points result=count
branches offices locations | city town place=city | phone telephone=phone?
books titles works | title book name=title | author writer=person?
tasks todos actions | task action todo title=note | owner assignee who=person?
readings measurements samples | sensor id point=code | value reading=decimal
orders shipments deliveries | order_id number id=code | customer name client=person | total amount=price?
"""
