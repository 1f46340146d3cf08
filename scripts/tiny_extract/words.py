"""Word lists for the generator. All are ordinary words and names; syllable-made names are mixed in by values.py."""


def _w(text: str) -> list[str]:
    return text.split()


def _p(text: str) -> list[str]:
    return [part.strip() for part in text.split("|") if part.strip()]


FIRST = _w("""James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph
Jessica Thomas Sarah Charles Karen Daniel Lisa Matthew Nancy Anthony Betty Mark Sandra Paul Ashley Steven Emily Andrew
Kimberly Joshua Donna Kevin Michelle Brian Carol George Amanda Timothy Melissa Ronald Deborah Jason Rebecca Ryan Laura
Jacob Helen Gary Anna Nicholas Ruth Eric Olivia Jonathan Julia Stephen Grace Larry Victoria Justin Emma Scott Sofia Ben
Maria Ana José João Luis Carmen Miguel Lucía Pedro Inês Giulia Marco Luca Chiara Hans Greta Jürgen Anke Klaus Ingrid Lars
Sven Astrid Björn Freya Pierre Élodie Jean Claire François Amélie Ahmed Fatima Omar Layla Yusuf Aisha Wei Mei Hiroshi Yuki
Kenji Sakura Priya Raj Anjali Vikram Arjun Deepa Ivan Olga Dmitri Natasha Kofi Ama Chidi Ngozi Kwame Zara Tom Kate Sam Alex
Max Nina Leo Mia Zoe Ian Owen Liam Noah Ella Ava Lily Jack Harry Oscar Ruby Ivy Hugo Felix Nora Tessa Bruno Marta Piotr
Agnieszka Zofia Tomasz Eva Petra Milan Dana Erik Linnea Mikko Aino Siobhan Declan Rhys Megan Isla Hamish Carlos Diego Elena
Rosa Mateo Valentina Andrés Camila Hannah Peter Martin Simon Frank Oliver Henry Arthur Alice Charlotte Beatrice Margaret""")
LAST = _w("""Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Gonzalez Wilson Anderson
Thomas Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark Ramirez Lewis Robinson Walker Young Allen
King Wright Scott Torres Nguyen Hill Flores Green Adams Nelson Baker Hall Rivera Campbell Mitchell Carter Roberts Gomez
Phillips Evans Turner Diaz Parker Cruz Edwards Collins Reyes Stewart Morris Morales Murphy Cook Rogers Gutierrez Ortiz Morgan
Cooper Peterson Bailey Reed Kelly Howard Ramos Kim Cox Ward Richardson Watson Brooks Chavez Wood Bennett Gray Mendoza Ruiz
Hughes Price Alvarez Castillo Sanders Patel Myers Long Ross Foster Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker
Schulz Hoffmann Koch Bauer Richter Klein Wolf Schröder Neumann Schwarz Zimmermann Braun Krüger Hofmann Hartmann Lange Rossi
Russo Ferrari Esposito Bianchi Romano Colombo Ricci Marino Greco Dubois Durand Leroy Moreau Simon Laurent Lefebvre Michel
Silva Santos Oliveira Souza Lima Pereira Costa Almeida Carvalho Novak Kowalski Nowak Horvat Ivanov Petrov Sokolov Popov Chen
Wang Li Zhang Liu Yang Huang Zhao Wu Zhou Tanaka Suzuki Sato Takahashi Watanabe Ito Yamamoto Nakamura Singh Kumar Sharma Gupta
Khan Ahmed Ali Hassan Ibrahim Okafor Mensah Adeyemi Dlamini Larsen Hansen Olsen Nielsen Lindqvist Andersson Virtanen
O'Brien O'Connor Byrne Doyle Fletcher Hartley Whitfield Ashworth Pemberton Lockwood Marsh Holt Frost Stone Field Hayes""")
CITY = _p("""London|Paris|Berlin|Madrid|Rome|Vienna|Prague|Lisbon|Dublin|Oslo|Stockholm|Copenhagen|Helsinki|Warsaw|Budapest|
Amsterdam|Brussels|Zurich|Geneva|Munich|Hamburg|Cologne|Frankfurt|Milan|Naples|Turin|Barcelona|Valencia|Seville|Porto|Lyon|
Marseille|Nice|Bordeaux|Manchester|Leeds|Bristol|Glasgow|Edinburgh|Cardiff|Belfast|Cork|Galway|New York|Boston|Chicago|Denver|
Seattle|Portland|Austin|Dallas|Houston|Miami|Atlanta|Phoenix|San Diego|San Francisco|Los Angeles|Philadelphia|Detroit|
Minneapolis|Toronto|Montreal|Vancouver|Ottawa|Calgary|Sydney|Melbourne|Brisbane|Perth|Auckland|Wellington|Tokyo|Osaka|Kyoto|
Seoul|Singapore|Hong Kong|Shanghai|Beijing|Mumbai|Delhi|Bangalore|Chennai|Dubai|Cairo|Nairobi|Lagos|Accra|Cape Town|
Johannesburg|São Paulo|Rio de Janeiro|Buenos Aires|Santiago|Lima|Bogotá|Mexico City|Utrecht|Rotterdam|Ghent|Antwerp|Basel|Graz|
Salzburg|Krakow|Gdansk|Riga|Tallinn|Vilnius|Athens|Istanbul|Ankara|Tel Aviv|Leipzig|Dresden|Stuttgart|Bologna|Florence|Venice|
Oxford|Cambridge|Bath|York|Brighton|Norwich|Exeter|Springfield|Salem|Madison|Albany|Savannah|Boulder|Tucson|Reno|Omaha|Tampa|
Nashville|Memphis|Cleveland|Columbus|Pittsburgh|Baltimore|Charlotte|Richmond|Santa Fe|Salt Lake City|Kansas City|Las Vegas""")
COUNTRY = _p("""Germany|France|Spain|Italy|Portugal|Ireland|Norway|Sweden|Denmark|Finland|Poland|Hungary|Austria|Switzerland|
Belgium|Netherlands|United Kingdom|USA|United States|Canada|Mexico|Brazil|Argentina|Chile|Peru|Japan|China|India|Australia|
New Zealand|South Africa|Kenya|Ghana|Nigeria|Egypt|Morocco|Turkey|Greece|Croatia|Slovenia|Czech Republic|Vietnam|Thailand|
Indonesia|Malaysia|Singapore|South Korea|Iceland|Estonia|Latvia|Lithuania|Romania|Bulgaria|Ethiopia|Colombia|Costa Rica""")
STREET = _w("""Main Oak Maple Cedar Elm Pine Park Lake Hill Church High Mill Station Victoria King Queen Market Bridge River
Spring Garden Chestnut Walnut Willow Birch Highland Sunset Forest Meadow Harbour Castle Abbey Orchard Grove Franklin Washington
Lincoln Jefferson Madison Jackson Baker Grand Central Union Liberty Broad Water North South East West Second Third Fifth""")
STREET_END = _w("Street Street Street St Avenue Avenue Ave Road Road Rd Lane Drive Court Place Way Boulevard Close Square Terrace")
COMPANY_A = _w("""Acme Northwind Contoso Globex Initech Umbrella Apex Summit Vertex Orbit Pioneer Delta Atlas Nova Quantum Stellar
Blue Green Silver Golden Red Bright Clear Rapid Prime Urban Metro Coastal Alpine Northern Southern Eastern Western Pacific
Atlantic Global United First National Royal Crystal Iron Stone Oak Maple Cedar River Lake Ocean Harbor Sunrise Evergreen Falcon
Eagle Hawk Lion Tiger Wolf Bear Fox Phoenix Dragon Titan Orion Luna Solar Cosmo Hexa Omni Poly Inter Trans Hyper Micro Macro
Brightwater Stonegate Redwood Ironbridge Fairview Larkspur Kestrel Halcyon Meridian Zenith Cobalt Juniper Saffron""")
COMPANY_B = _w("""Systems Solutions Technologies Industries Logistics Consulting Partners Media Labs Software Foods Motors Energy
Health Pharma Design Studios Textiles Robotics Analytics Networks Dynamics Digital Group Holdings Ventures Capital Supplies
Electronics Furniture Tools Bakery Books Travel Construction Engineering Security Services Trading Printing Instruments
Interiors Catering Publishing Agency Works Outfitters Hardware Plumbing Roofing Gardens Optics Ceramics Freight Marine""")
COMPANY_END = _p("Ltd|Inc|Inc.|LLC|GmbH|AG|Corp|Co.|Corporation|Limited|BV|S.A.|plc|& Sons|Group|& Co")
ADJ = _w("""red blue green black white grey silver golden small large big tiny heavy light old new modern classic vintage wooden
steel plastic leather cotton ceramic glass copper digital portable wireless electric manual automatic smart solar compact
foldable waterproof adjustable ergonomic organic fresh dried frozen roasted smoked spicy sweet salted crisp warm cold quiet loud
bright dark soft hard smooth rough round square narrow wide deep shallow fast slow annual monthly weekly daily summer winter
spring autumn early late open public private local global internal external basic advanced premium standard deluxe mini super
quick simple complex creative practical applied introductory final major minor critical hidden broken missing spare double""")
THING = _w("""lamp chair table desk shelf sofa bed mirror clock kettle toaster blender oven fridge freezer heater fan camera tripod
phone charger cable adapter monitor keyboard mouse printer scanner router laptop tablet speaker headphones microphone backpack
wallet suitcase umbrella jacket sweater shirt jeans boots sneakers gloves scarf hat helmet bicycle scooter tent lantern hammer
drill saw wrench screwdriver ladder bucket broom vacuum mop notebook pen pencil stapler folder envelope poster frame candle vase
pillow blanket towel curtain carpet mug plate bowl spoon fork knife pan pot bottle thermos basket box bag toy puzzle guitar
piano violin drum telescope microscope thermometer battery flashlight compass watch ring necklace bracelet earrings sunglasses
bookcase wardrobe stool bench cabinet drawer rug cushion projector webcam keyboard dock hub switch sensor valve pump filter
motor engine gearbox brake tyre pedal saddle whistle rope chain hook bolt nut screw nail hinge bracket tile brick""")
EVENT_A = _w("""annual spring summer autumn winter charity city local international regional open community holiday company team
project design science art music jazz folk film book food wine coffee tech startup Python Rust data cloud security marketing
sales finance leadership robotics climate photography chess yoga running cycling gardening history poetry dance theatre""")
EVENT_B = _w("""meetup workshop conference seminar concert festival party dinner lunch breakfast gala fair market exhibition lecture
talk webinar hackathon retreat picnic tournament marathon race screening reading rehearsal ceremony reception reunion meeting
review kickoff training course class session summit symposium auction sale parade tasting tour camp quiz""")
VENUE_A = _w("""Town City Grand Royal Riverside Lakeside Central Community Victoria Albert Old New Market Harbour Garden Castle Park
University College Memorial National Union Liberty Corn West East North South Blue Red White Green""")
VENUE_B = _w("Hall Theatre Library Museum Arena Stadium Pavilion Gallery Centre Center Hotel Inn Club House Church School Park Hub "
             "Auditorium Ballroom Brewery Café Exchange Lounge Studio Tavern Barn Chapel Cinema Pier")
ROLE = _p("""software engineer|senior developer|data scientist|project manager|product manager|account manager|sales manager|
marketing director|head of design|UX designer|graphic designer|accountant|financial analyst|HR manager|recruiter|office manager|
chief executive officer|CEO|CTO|CFO|head of sales|vice president|consultant|architect|civil engineer|mechanical engineer|
electrician|plumber|nurse|doctor|dentist|pharmacist|teacher|lecturer|professor|researcher|lab technician|chef|sous chef|
waiter|barista|driver|logistics coordinator|warehouse manager|purchasing manager|buyer|legal counsel|lawyer|paralegal|
journalist|editor|copywriter|photographer|video editor|translator|support specialist|systems administrator|network engineer|
security analyst|DevOps engineer|backend developer|frontend developer|QA engineer|business analyst|operations manager|
customer success manager|event coordinator|receptionist|librarian|carpenter|mechanic|welder|gardener|baker|store manager|
cashier|store assistant|research assistant|machine learning engineer|technical writer|site manager|quality inspector""")
SKILL = _p("""Python|Java|C++|Rust|Go|JavaScript|TypeScript|SQL|Excel|Docker|Kubernetes|Linux|Git|React|AWS|Azure|Terraform|
Photoshop|Figma|AutoCAD|SAP|Salesforce|public speaking|negotiation|project management|data analysis|copywriting|bookkeeping|
customer service|team leadership|statistics|machine learning|networking|welding|first aid|forklift operation|German|French|
Spanish|Japanese|Mandarin|technical writing|user research|accounting|scheduling|budgeting|PHP|Swift|Kotlin|Scala|MATLAB""")
FOOD = _p("""flour|sugar|butter|eggs|milk|salt|pepper|olive oil|garlic|onions|tomatoes|potatoes|carrots|celery|mushrooms|spinach|
basil|parsley|thyme|rosemary|oregano|cumin|paprika|cinnamon|vanilla|chocolate|cocoa powder|honey|maple syrup|lemon juice|limes|
ginger|soy sauce|rice|pasta|noodles|lentils|chickpeas|black beans|chicken breast|ground beef|bacon|salmon|shrimp|tofu|cheddar|
parmesan|mozzarella|feta|cream|yogurt|coconut milk|breadcrumbs|yeast|baking powder|almonds|walnuts|raisins|apples|bananas|
strawberries|blueberries|pumpkin|zucchini|aubergine|red wine|vinegar|mustard|chili flakes|coriander|mint|oats|sesame seeds""")
DISH = _p("""soup|stew|salad|pie|cake|bread|curry|risotto|lasagne|pancakes|cookies|muffins|tart|casserole|stir-fry|tacos|burgers|
omelette|chowder|pudding|brownies|pizza|quiche|gratin|meatballs|dumplings|goulash|paella|scones|waffles""")
TOPIC = _w("""algebra biology chemistry physics history geography economics philosophy psychology sociology statistics calculus
programming robotics databases networks marketing accounting law medicine nursing painting drawing sculpture photography ceramics
music guitar piano singing dance yoga pilates cooking baking gardening carpentry writing poetry journalism translation Spanish
French German Italian Japanese Chinese Arabic astronomy geology ecology genetics logic ethics finance trading negotiation""")
NOUN = _w("""morning evening week month year day hour minute moment weather rain sun wind snow road bridge river garden house window
door kitchen office room floor wall roof street corner train bus car bike plane ship station airport hotel shop market school
hospital bank library museum park beach forest mountain village town country family friend neighbour teacher student doctor nurse
driver manager customer visitor guest child parent brother sister dog cat bird horse fish tree flower grass leaf fruit bread
coffee tea water wine dinner lunch breakfast story book letter email message report paper list plan idea question answer problem
reason result change chance choice decision project job work task team group company budget price cost money account card ticket
bill order delivery package box bag key phone screen computer file photo picture song film game match race trip holiday party
meeting call talk speech word sentence language number name address date time place area part side end start middle top bottom
system machine tool engine battery light sound colour shape size weight speed power energy heat air fire stone metal wood glass
update version feature error server page site link button form field table chart note draft copy print sample test check visit""")
VERB = _w("""opened closed moved changed fixed broke found lost bought sold sent received wrote read called asked answered helped
needed wanted liked loved missed forgot remembered noticed checked tested finished started stopped kept left joined visited
cleaned painted built repaired installed removed added cut mixed cooked served ordered paid booked cancelled planned prepared
discussed explained described mentioned suggested agreed approved rejected updated reviewed printed signed delivered returned
collected shared saved deleted copied replaced used tried enjoyed watched heard saw met thanked followed carried pulled pushed""")
ADVERB = _w("quickly slowly carefully finally already again soon later earlier yesterday usually often sometimes rarely always "
            "probably certainly quietly happily recently suddenly completely nearly together today simply properly")
PREP = _w("in on near behind under above beside after before during without with about for from through across around inside")
COLOUR = _w("red blue green black white grey silver gold beige brown orange yellow purple pink navy turquoise burgundy ivory")
CAR = _p("""Toyota Corolla|Honda Civic|Ford Focus|Volkswagen Golf|BMW 320i|Audi A4|Mercedes C200|Renault Clio|Peugeot 208|Fiat 500|
Skoda Octavia|Volvo V60|Tesla Model 3|Hyundai i30|Kia Ceed|Mazda 3|Nissan Qashqai|Opel Astra|Seat Leon|Subaru Outback|Jeep Wrangler|
Chevrolet Malibu|Dodge Ram|Lexus RX|Mini Cooper|Suzuki Swift|Dacia Duster|Porsche 911|Ford Fiesta|Toyota Yaris|Honda Accord""")
AIRLINE = _p("""Lufthansa|British Airways|Air France|KLM|Delta|United|American Airlines|Emirates|Qatar Airways|Ryanair|easyJet|
Iberia|SAS|Finnair|Swiss|Austrian Airlines|Turkish Airlines|Singapore Airlines|Qantas|ANA|Air Canada|JetBlue|Southwest|TAP""")
CARRIER = _p("DHL|UPS|FedEx|USPS|DPD|GLS|Hermes|TNT|Royal Mail|PostNord|Maersk|DB Schenker|Canada Post|Aramex|Kuehne + Nagel")
GENRE = _p("fantasy|science fiction|thriller|romance|history|biography|mystery|poetry|horror|drama|comedy|documentary|jazz|rock|folk")
SYMPTOM = _p("""headache|fever|cough|sore throat|back pain|knee pain|toothache|rash|dizziness|nausea|fatigue|chest pain|insomnia|
runny nose|stomach ache|shortness of breath|ear pain|swollen ankle|blurred vision|joint pain|high blood pressure""")
MEDICINE = _p("""ibuprofen|paracetamol|amoxicillin|aspirin|metformin|lisinopril|omeprazole|atorvastatin|cetirizine|insulin|
salbutamol|prednisone|naproxen|codeine|warfarin|sertraline|losartan|doxycycline|azithromycin|vitamin D""")
PET = _w("dog cat rabbit hamster parrot horse goldfish tortoise")
DEPARTMENT = _p("""sales|marketing|finance|engineering|human resources|IT|legal|operations|customer service|research|logistics|
purchasing|accounting|design|quality assurance|production|security|facilities|procurement|training""")
SYLLABLE = _w("""ba be bi bo bu ca ce co da de di do du fa fe fi fo ga ge gi go gu ha he hi ho ja jo ka ke ki ko la le li lo lu ma
me mi mo mu na ne ni no nu pa pe pi po ra re ri ro ru sa se si so su ta te ti to tu va ve vi vo wa we wi xa ya yo za ze zi zo
bra bre cla cle cro dra fla fre gla gra kla kro pla pre pro sha sho ska sla spa sta ste stra tha tra tre tri tro van ven vin vor
mar mer mir mor nal nel nor ral ren rin ron sal sel sen sol tal tan ten ton ber bel bor dan den dor fen gan gor han hol jan kan
kel lan len lin lor""")
