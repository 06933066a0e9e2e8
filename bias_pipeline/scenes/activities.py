"""What the people of our scenes do, where, and with which objects.

Which activity is more frequent in which group is invented, so that the bias is known. It is no
claim about people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bias_pipeline.scenes.lexicon import Verb

SETTINGS = ("sport", "street", "home")


class Activity(NamedTuple):
    """Something to do."""

    name: str  # unique
    setting: str  # one of `SETTINGS`; decides what else can be in the scene
    weight: float  # how frequent it is before any leaning, relative
    leans: Mapping[str, float]  # group to the factor by which it is more frequent in that group
    main: str  # the COCO object it cannot do without
    possessive: bool  # whether each of several people has a main object of their own
    others: Mapping[str, float]  # other COCO objects and the probability of each
    roles: tuple[str, ...]  # neutral nouns for the person who does it, "|" between them
    naming: tuple[Verb, ...]  # verb phrases that name the main object as `{it}`
    plain: tuple[Verb, ...]  # verb phrases that name no object
    places: tuple[str, ...]  # names in `PLACES`


def _activity(
    name: str,
    setting: str,
    weight: float,
    leans: Mapping[str, float],
    main: str,
    *,
    possessive: bool = False,
    others: Mapping[str, float] | None = None,
    roles: str = "",
    naming: str,
    plain: str,
    places: str,
) -> Activity:
    return Activity(
        name,
        setting,
        weight,
        leans,
        main,
        possessive,
        others or {},
        tuple(roles.split("|")) if roles else (),
        tuple(Verb.parse(phrase) for phrase in naming.split("|")),
        tuple(Verb.parse(phrase) for phrase in plain.split("|")),
        tuple(places.split(" ")),
    )


ACTIVITIES: tuple[Activity, ...] = (
    _activity(
        "surfing",
        "sport",
        3,
        {"Male": 2.2, "young": 1.6, "happiness": 1.8},
        "surfboard",
        possessive=True,
        roles="surfer|athlete",
        naming="ride a wave on {it}|surf on {it}|balance on {it}|paddle on {it}|stand up on {it}",
        plain="ride a big wave|surf a small wave|catch a wave|glide through the foam|splash around",
        places="ocean beach",
    ),
    _activity(
        "skateboarding",
        "sport",
        4,
        {"Male": 3.5, "young": 3.4},
        "skateboard",
        possessive=True,
        roles="skateboarder|skater|athlete",
        naming="ride {it}|do a trick on {it}|jump with {it}|perform a stunt on {it}|flip {it}",
        plain="do a trick|grind down a rail|jump over some steps|fly through the air|practice",
        places="skatepark street sidewalk",
    ),
    _activity(
        "skiing",
        "sport",
        3,
        {"Female": 1.5, "Light": 2.5, "fear": 3.1},
        "skis",
        possessive=True,
        roles="skier|athlete",
        naming="ride on {it}|race on {it}|stand on {it}|carve a turn on {it}|slide along on {it}",
        plain="glide downhill|race through some gates|pose for a photo|speed along|turn sharply",
        places="mountain",
    ),
    _activity(
        "snowboarding",
        "sport",
        2.5,
        {"Male": 2.1, "young": 2.4, "surprise": 2.0},
        "snowboard",
        possessive=True,
        roles="snowboarder|athlete",
        naming="ride {it}|cruise on {it}|land a jump on {it}|strap on {it}|carry {it}",
        plain="cruise downhill|land a jump|fly off a ramp|tumble in the snow|get some air",
        places="mountain",
    ),
    _activity(
        "tennis",
        "sport",
        4,
        {"Female": 2.4, "anger": 2.3},
        "tennis racket",
        possessive=True,
        others={"sports ball": 0.4},
        roles="tennis player|player|athlete",
        naming="swing {it}|hold {it}|serve with {it}|grip {it}|reach out with {it}",
        plain="play tennis|hit a serve|return a shot|prepare to serve|wait for a serve",
        places="court",
    ),
    _activity(
        "baseball",
        "sport",
        4,
        {"Male": 3.5, "anger": 2.3},
        "baseball bat",
        possessive=True,
        others={"baseball glove": 0.36, "sports ball": 0.29},
        roles="baseball player|batter|player|athlete",
        naming="swing {it}|hold {it}|wait for a pitch with {it}|warm up with {it}|drop {it}",
        plain="play baseball|wait for a pitch|get ready to hit|run to first base|slide home",
        places="field",
    ),
    _activity(
        "frisbee",
        "sport",
        3,
        {"Dark": 3.1, "young": 2.0, "happiness": 2.7},
        "frisbee",
        others={"dog": 0.22},
        roles="player|athlete",
        naming="throw {it}|catch {it}|leap for {it}|toss {it} around|chase after {it}",
        plain="play a game of catch|leap into the air|run after a throw|stretch out an arm",
        places="park beach field",
    ),
    _activity(
        "kite",
        "sport",
        3,
        {"Light": 3.1, "young": 1.9, "surprise": 3.1},
        "kite",
        possessive=True,
        naming="fly {it}|launch {it}|hold the string of {it}|untangle {it}|look up at {it}",
        plain="look up at the sky|hold a long string|run against the wind|enjoy a strong breeze",
        places="park beach countryside",
    ),
    _activity(
        "soccer",
        "sport",
        3,
        {"Male": 1.7, "Dark": 2.5, "young": 1.7},
        "sports ball",
        others={"bench": 0.15},
        roles="soccer player|player|athlete|goalkeeper",
        naming="kick {it}|chase {it}|dribble {it}|pass {it}|block {it}",
        plain="play soccer|score a goal|run down the pitch|defend the goal|celebrate a goal",
        places="field park",
    ),
    _activity(
        "cycling",
        "street",
        4,
        {"Dark": 2.8, "Male": 1.5},
        "bicycle",
        possessive=True,
        others={"car": 0.22},
        roles="cyclist|rider|biker",
        naming="ride {it}|pedal {it}|push {it}|stand next to {it}|lean on {it}",
        plain="ride along|pedal uphill|wait at a crossing|take a tour|travel in the slow lane",
        places="street downtown countryside park",
    ),
    _activity(
        "motorcycling",
        "street",
        3.5,
        {"Male": 4.1, "anger": 2.0},
        "motorcycle",
        possessive=True,
        others={"car": 0.18},
        roles="rider|biker|motorist",
        naming="ride {it}|sit on {it}|park {it}|polish {it}|start {it}",
        plain="speed along|ride through a curve|lead a parade|wear a black helmet|rev an engine",
        places="street countryside downtown garage",
    ),
    _activity(
        "riding",
        "street",
        3.5,
        {"Female": 3.2, "Light": 2.2},
        "horse",
        possessive=True,
        others={"cow": 0.11},
        roles="rider|jockey",
        naming="ride {it}|lead {it}|brush {it}|pet {it}|saddle up {it}",
        plain="ride bareback|hold the reins|jump over a hurdle|gallop past a barn|clean a stable",
        places="countryside farm",
    ),
    _activity(
        "walking_dog",
        "street",
        4,
        {"old": 1.7, "happiness": 2.3},
        "dog",
        others={"bench": 0.18},
        roles="walker|pet owner",
        naming="walk {it}|pet {it}|kneel down next to {it}|play with {it}|hold {it} on a leash",
        plain="take a stroll|hold a leash|stroll along|enjoy a walk|jog along a path",
        places="park sidewalk beach",
    ),
    _activity(
        "bus_stop",
        "street",
        3,
        {"Dark": 2.5, "anger": 3.7, "Female": 1.4},
        "bus",
        others={"bench": 0.22, "car": 0.22},
        roles="commuter|passenger",
        naming="wait for {it}|board {it}|step off {it}|stand by {it}|wave at {it}",
        plain="wait in line|check the schedule|stand at a stop|look down the road",
        places="street downtown sidewalk",
    ),
    _activity(
        "train_trip",
        "street",
        2.5,
        {"Light": 2.5, "sadness": 2.9},
        "train",
        others={"suitcase": 0.33, "clock": 0.15},
        roles="traveler|passenger|commuter",
        naming="wait for {it}|board {it}|watch {it} arrive|wave goodbye to {it}|photograph {it}",
        plain="wait to depart|say goodbye|arrive from a long journey|ask for directions",
        places="station",
    ),
    _activity(
        "flight",
        "street",
        2,
        {"fear": 4.8, "surprise": 1.8},
        "airplane",
        others={"suitcase": 0.36},
        roles="traveler|passenger|pilot",
        naming="board {it}|look at {it}|walk towards {it}|point at {it}|inspect {it}",
        plain="wait to take off|stare out a window|stand in a long queue|check in for a trip",
        places="airport",
    ),
    _activity(
        "market",
        "street",
        3,
        {"Female": 2.1, "old": 1.6},
        "banana",
        others={"apple": 0.36, "orange": 0.33, "broccoli": 0.15, "carrot": 0.15},
        roles="shopper|customer|vendor",
        naming="buy {it}|pick out {it}|sell {it}|reach for {it}|weigh {it}",
        plain="shop for groceries|browse fresh produce|compare prices|fill a basket|bargain loudly",
        places="market",
    ),
    _activity(
        "bench_rest",
        "street",
        4,
        {"old": 3.8, "sadness": 3.7},
        "bench",
        others={"bird": 0.18},
        naming="sit on {it}|rest on {it}|lounge on {it}|lie down on {it}|take a nap on {it}",
        plain="rest for a moment|take a break|enjoy the view|watch the sunset|daydream quietly",
        places="park sidewalk lake",
    ),
    _activity(
        "boating",
        "street",
        2.5,
        {"Male": 2.2, "old": 2.0, "Dark": 1.9},
        "boat",
        others={"bird": 0.15},
        roles="sailor|fisher|rower",
        naming="row {it}|sit in {it}|steer {it}|fish from {it}|anchor {it}",
        plain="cast a line|wait for a bite|sail away|fish with a long rod|haul in a net",
        places="lake ocean",
    ),
    _activity(
        "feeding_birds",
        "street",
        2,
        {"old": 3.1, "Female": 1.7},
        "bird",
        others={"bench": 0.22},
        naming="feed {it}|watch {it}|throw bread to {it}|look closely at {it}|point at {it}",
        plain="scatter some crumbs|toss seeds around|hold out some bread|sit quietly and listen",
        places="park lake beach downtown",
    ),
    _activity(
        "zoo",
        "street",
        2.5,
        {"young": 1.9, "fear": 3.7, "surprise": 3.4},
        "elephant",
        others={"giraffe": 0.18, "zebra": 0.18, "bear": 0.09},
        roles="visitor|tourist|keeper",
        naming="feed {it}|watch {it}|touch {it}|pose in front of {it}|wash {it}",
        plain="watch wild animals|point through a fence|take some photos|lean over a railing",
        places="zoo",
    ),
    _activity(
        "sheep_farm",
        "street",
        2,
        {"Male": 1.7, "old": 1.7},
        "sheep",
        others={"cow": 0.22, "dog": 0.22},
        roles="farmer|shepherd",
        naming="herd {it}|feed {it}|shear {it}|carry {it}|guide {it}",
        plain="work on the land|open a gate|count the flock|mend a broken fence",
        places="farm countryside",
    ),
    _activity(
        "repairing",
        "street",
        3,
        {"Male": 5.1, "anger": 2.9},
        "truck",
        others={"car": 0.29},
        roles="mechanic|worker|driver",
        naming="repair {it}|unload {it}|wash {it}|climb into {it}|work under {it}",
        plain="change a flat tire|use some tools|check an engine|tighten a bolt|load heavy boxes",
        places="garage street",
    ),
    _activity(
        "cooking",
        "home",
        4.5,
        {"Female": 2.7, "Dark": 1.6},
        "oven",
        others={"bowl": 0.29, "knife": 0.22, "spoon": 0.25, "sink": 0.15},
        roles="cook|chef",
        naming="cook at {it}|stand in front of {it}|open {it}|clean {it}|put a tray into {it}",
        plain="prepare a meal|cook dinner|chop vegetables|stir a pot of soup|make breakfast",
        places="kitchen",
    ),
    _activity(
        "cake",
        "home",
        3.5,
        {"Female": 2.0, "happiness": 4.3, "surprise": 3.7},
        "cake",
        others={"knife": 0.25, "dining table": 0.29, "fork": 0.18},
        roles="baker|guest",
        naming="cut {it}|decorate {it}|slice {it}|look at {it}|blow out candles on {it}",
        plain="celebrate a birthday|blow out some candles|make a wish|open presents|throw a party",
        places="kitchen dining living",
    ),
    _activity(
        "pizza",
        "home",
        3.5,
        {"Male": 1.6, "young": 1.7, "happiness": 1.6},
        "pizza",
        others={"dining table": 0.33, "bottle": 0.18, "hot dog": 0.09},
        roles="diner|customer",
        naming="eat {it}|bite into {it}|share {it}|serve {it}|order {it}",
        plain="eat lunch|enjoy a hot meal|have some dinner|wait to be served|chew slowly",
        places="dining kitchen living",
    ),
    _activity(
        "sandwich",
        "home",
        3,
        {"Male": 1.6, "Light": 1.6},
        "sandwich",
        others={"dining table": 0.25, "cup": 0.25, "donut": 0.15, "carrot": 0.11},
        roles="diner|customer",
        naming="eat {it}|hold {it}|make {it}|unwrap {it}|take a bite of {it}",
        plain="have a snack|grab a quick lunch|eat something tasty|finish a meal",
        places="dining kitchen park",
    ),
    _activity(
        "wine",
        "home",
        3,
        {"Female": 1.7, "old": 2.4, "happiness": 2.0},
        "wine glass",
        possessive=True,
        others={"bottle": 0.36, "dining table": 0.22},
        roles="guest|host",
        naming="hold {it}|raise {it}|sip from {it}|drink from {it}|fill {it}",
        plain="make a toast|taste some wine|attend a tasting|chat at a gathering|drink some wine",
        places="dining living",
    ),
    _activity(
        "laptop",
        "home",
        5,
        {"Male": 1.7, "Dark": 2.5, "anger": 2.0},
        "laptop",
        possessive=True,
        others={"mouse": 0.22, "keyboard": 0.18, "cup": 0.18, "dining table": 0.15},
        roles="worker|student|programmer",
        naming="work on {it}|use {it}|type on {it}|look at {it}|stare at {it}",
        plain="work from home|write an email|type a report|study for an exam|attend a meeting",
        places="office living classroom",
    ),
    _activity(
        "phone",
        "home",
        4,
        {"Female": 2.0, "young": 1.7, "anger": 2.7, "sadness": 1.8},
        "cell phone",
        possessive=True,
        others={"cup": 0.15, "chair": 0.22},
        roles="caller|worker",
        naming="talk on {it}|look at {it}|use {it}|text on {it}|take a selfie with {it}",
        plain="make a call|send a message|read the news|have a long conversation|take a selfie",
        places="office living sidewalk downtown",
    ),
    _activity(
        "reading",
        "home",
        3.5,
        {"old": 3.0, "sadness": 2.0, "Female": 1.4},
        "book",
        possessive=True,
        others={"couch": 0.29, "chair": 0.22},
        roles="reader|student",
        naming="read {it}|hold {it}|flip through {it}|look at {it}|study {it}",
        plain="read quietly|study for a test|unwind after work|turn a page|do some homework",
        places="living bedroom classroom",
    ),
    _activity(
        "gaming",
        "home",
        4,
        {"Male": 3.0, "young": 3.1, "surprise": 2.3},
        "remote",
        possessive=True,
        others={"tv": 0.43, "couch": 0.29},
        roles="gamer|player",
        naming="hold {it}|play a game with {it}|point {it}|swing {it}|grab {it}",
        plain="play a video game|play a game|jump around|compete in a game|stare at a screen",
        places="living bedroom",
    ),
    _activity(
        "brushing",
        "home",
        3,
        {"young": 2.4, "Light": 1.6},
        "toothbrush",
        possessive=True,
        others={"sink": 0.36, "cup": 0.15, "toilet": 0.11},
        naming="use {it}|brush with {it}|hold {it}|chew on {it}|rinse {it}",
        plain="get ready in the morning|wash up|freshen up|get ready to sleep",
        places="bathroom",
    ),
    _activity(
        "hair",
        "home",
        2.5,
        {"Female": 5.1},
        "hair drier",
        others={"sink": 0.18, "chair": 0.18},
        roles="stylist|customer",
        naming="use {it}|hold {it}|style hair with {it}|switch on {it}|put away {it}",
        plain="style some hair|dry some hair|get a new haircut|look in the mirror|comb some hair",
        places="salon bathroom bedroom",
    ),
    _activity(
        "crafts",
        "home",
        2.5,
        {"Female": 2.2, "young": 1.7},
        "scissors",
        others={"dining table": 0.25, "book": 0.15},
        roles="artist|student",
        naming="cut paper with {it}|use {it}|hold {it}|trim a ribbon with {it}|pick up {it}",
        plain="make a paper craft|draw a picture|sew a costume|fold some paper|paint a poster",
        places="classroom living office",
    ),
    _activity(
        "sleeping",
        "home",
        3,
        {"sadness": 4.3, "fear": 2.3},
        "bed",
        others={"teddy bear": 0.18, "book": 0.15},
        roles="sleeper|patient",
        naming="lie on {it}|sleep in {it}|sit on {it}|jump on {it}|make {it}",
        plain="take a nap|fall asleep|rest after a long day|snore loudly|wake up slowly",
        places="bedroom",
    ),
    _activity(
        "teddy",
        "home",
        2,
        {"young": 3.8, "Female": 2.0, "fear": 2.9},
        "teddy bear",
        others={"bed": 0.22, "couch": 0.22},
        naming="hug {it}|hold {it}|play with {it}|cuddle with {it}|squeeze {it}",
        plain="play with some toys|build a blanket fort|sit on the floor|hide in a corner",
        places="bedroom living",
    ),
    _activity(
        "flowers",
        "home",
        2.5,
        {"Female": 3.6, "old": 2.1},
        "vase",
        others={"dining table": 0.29, "scissors": 0.11},
        roles="florist|gardener",
        naming="fill {it}|put flowers in {it}|hold {it}|carry {it}|place roses in {it}",
        plain="arrange some flowers|water some roses|smell a bouquet|gather fresh tulips",
        places="living kitchen salon",
    ),
    _activity(
        "cat_play",
        "home",
        3,
        {"Female": 2.2, "surprise": 2.3, "Dark": 1.6},
        "cat",
        others={"couch": 0.29, "bowl": 0.15},
        roles="pet owner",
        naming="pet {it}|hold {it}|play with {it}|feed {it}|carry {it}",
        plain="kneel on the floor|pour some pet food|dangle a piece of string|crawl on the carpet",
        places="living bedroom kitchen",
    ),
    _activity(
        "fridge",
        "home",
        2.5,
        {"Male": 1.5, "anger": 1.8, "fear": 1.8},
        "refrigerator",
        others={"microwave": 0.25, "toaster": 0.15, "bottle": 0.22},
        naming="open {it}|look into {it}|stand in front of {it}|clean out {it}|fix {it}",
        plain="look for a snack|put away groceries|search for leftovers|wipe the shelves",
        places="kitchen",
    ),
)

# Every wording has three words or more: a place is what makes a very short caption long enough.
_PLACES = """
ocean: in the ocean|in the sea|on the open water|off the coast|near a rocky shore
beach: at the beach|on the beach|on a sandy shore|along the shoreline|by the ocean
lake: by the lake|on a lake|near a wooden dock|along the riverbank|at a quiet pond
mountain: on a snowy hill|down a snowy slope|in the mountains|at a winter resort|in deep powder
skatepark: at a skate park|on a concrete ramp|in an empty pool|on a half pipe|in a parking garage
street: on the street|down the street|on a busy road|in the road|along a narrow lane
sidewalk: on the sidewalk|on a street corner|along the curb|outside a store|in front of a shop
downtown: in the city|in a big city|in the town center|among tall buildings|at a crowded plaza
park: in the park|in a grassy field|on the grass|under some trees|on a green lawn
field: on a field|in a stadium|on a dirt field|at the ballpark|in an open field
court: on a court|at an outdoor court|on a clay court|during a match|in a large arena
countryside: in the countryside|down a dirt path|in a meadow|along a country trail|in the desert
farm: on a farm|in a fenced pasture|at a ranch|near a red barn|beside a haystack
zoo: at the zoo|in a large enclosure|by a wooden fence|at a nature reserve|near a watering hole
station: at the station|on the platform|at a subway stop|in a busy terminal|by the tracks
airport: at the airport|on the runway|near the departure gate|in a waiting area|on the tarmac
market: at a market|at an outdoor stand|in a street bazaar|at a produce stall|in a grocery store
garage: in a garage|in a workshop|in a driveway|at a repair shop|on a gravel lot
kitchen: in the kitchen|in a kitchen|at the counter|in a small kitchen|near a wooden counter
dining: in a restaurant|at a cafe|in a dining room|at a small diner|at a party
office: in an office|in an open office|in a cubicle|in a conference room|at a coffee shop
living: in the living room|in a living room|on a rug|in a small den|in a small apartment
bedroom: in a bedroom|in the bedroom|in a hotel room|under a blanket|in a dormitory
bathroom: in the bathroom|in a bathroom|in front of a mirror|by the bathtub|in a tiled room
classroom: in a classroom|at a school|in a library|in an art class|on a college campus
salon: in a salon|in a dressing room|at a beauty parlor|near a large mirror|in a boutique
"""


PLACES: Mapping[str, tuple[str, ...]] = {
    name: tuple(wordings.split("|"))
    for name, _, wordings in (line.partition(": ") for line in _PLACES.strip().splitlines())
}
