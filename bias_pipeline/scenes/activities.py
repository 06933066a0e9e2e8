"""The activities of people in our scenes, with places and objects.

We invented which activity is more frequent in which group, so that the bias is known. The
frequencies are no claim about people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bias_pipeline.scenes.lexicon import Verb

SETTINGS = ("sport", "street", "home")


class Activity(NamedTuple):
    name: str  # a unique name
    setting: str  # one of `SETTINGS`; decides what else can be in the scene
    weight: float  # relative frequency before any leaning
    leans: Mapping[str, float]  # for each group, how many times as frequent it is there
    main: str  # the COCO object that the activity needs
    possessive: bool  # whether each of several people has their own main object
    others: Mapping[str, float]  # other COCO objects and the probability of each
    roles: tuple[str, ...]  # neutral nouns for the person who does it, with "|" between them
    naming: tuple[Verb, ...]  # verb phrases that name the main object as `{it}`
    plain: tuple[Verb, ...]  # verb phrases that name no object
    places: tuple[str, ...]  # names in `PLACES`


# One block per activity: name, setting, weight and leanings; the main object (after "their", each
# of several people has one) and other objects with their probabilities; who does it; verb phrases
# that name the main object, and verb phrases that name no object; places.
_ACTIVITIES = """
surfing: sport 3 @ Male 2.2 young 1.6 happiness 1.8
  with their surfboard
  as surfer|athlete
  ride a wave on {it}|surf on {it}|balance on {it}|paddle on {it}|stand up on {it}
  ride a big wave|surf a small wave|catch a wave|glide through the foam|splash around
  at ocean beach

skateboarding: sport 4 @ Male 3.5 young 3.4
  with their skateboard
  as skateboarder|skater|athlete
  ride {it}|do a trick on {it}|jump with {it}|perform a stunt on {it}|flip {it}
  do a trick|grind down a rail|jump over some steps|fly through the air|practice
  at skatepark street sidewalk

skiing: sport 3 @ Female 1.5 Light 2.5 fear 3.1
  with their skis
  as skier|athlete
  ride on {it}|race on {it}|stand on {it}|carve a turn on {it}|slide along on {it}
  glide downhill|race through some gates|pose for a photo|speed along|turn sharply
  at mountain

snowboarding: sport 2.5 @ Male 2.1 young 2.4 surprise 2
  with their snowboard
  as snowboarder|athlete
  ride {it}|cruise on {it}|land a jump on {it}|strap on {it}|carry {it}
  cruise downhill|land a jump|fly off a ramp|tumble in the snow|get some air
  at mountain

tennis: sport 4 @ Female 2.4 anger 2.3
  with their tennis racket + sports ball 0.4
  as tennis player|player|athlete
  swing {it}|hold {it}|serve with {it}|grip {it}|reach out with {it}
  play tennis|hit a serve|return a shot|prepare to serve|wait for a serve
  at court

baseball: sport 4 @ Male 3.5 anger 2.3
  with their baseball bat + baseball glove 0.36 + sports ball 0.29
  as baseball player|batter|player|athlete
  swing {it}|hold {it}|wait for a pitch with {it}|warm up with {it}|drop {it}
  play baseball|wait for a pitch|get ready to hit|run to first base|slide home
  at field

frisbee: sport 3 @ Dark 3.1 young 2 happiness 2.7
  with frisbee + dog 0.22
  as player|athlete
  throw {it}|catch {it}|leap for {it}|toss {it} around|chase after {it}
  play a game of catch|leap into the air|run after a throw|stretch out an arm
  at park beach field

kite: sport 3 @ Light 3.1 young 1.9 surprise 3.1
  with their kite
  fly {it}|launch {it}|hold the string of {it}|untangle {it}|look up at {it}
  look up at the sky|hold a long string|run against the wind|enjoy a strong breeze
  at park beach countryside

soccer: sport 3 @ Male 1.7 Dark 2.5 young 1.7
  with sports ball + bench 0.15
  as soccer player|player|athlete|goalkeeper
  kick {it}|chase {it}|dribble {it}|pass {it}|block {it}
  play soccer|score a goal|run down the pitch|defend the goal|celebrate a goal
  at field park

cycling: street 4 @ Dark 2.8 Male 1.5
  with their bicycle + car 0.22
  as cyclist|rider|biker
  ride {it}|pedal {it}|push {it}|stand next to {it}|lean on {it}
  ride along|pedal uphill|wait at a crossing|take a tour|travel in the slow lane
  at street downtown countryside park

motorcycling: street 3.5 @ Male 4.1 anger 2
  with their motorcycle + car 0.18
  as rider|biker|motorist
  ride {it}|sit on {it}|park {it}|polish {it}|start {it}
  speed along|ride through a curve|lead a parade|wear a black helmet|rev an engine
  at street countryside downtown garage

riding: street 3.5 @ Female 3.2 Light 2.2
  with their horse + cow 0.11
  as rider|jockey
  ride {it}|lead {it}|brush {it}|pet {it}|saddle up {it}
  ride bareback|hold the reins|jump over a hurdle|gallop past a barn|clean a stable
  at countryside farm

walking_dog: street 4 @ old 1.7 happiness 2.3
  with dog + bench 0.18
  as walker|pet owner
  walk {it}|pet {it}|kneel down next to {it}|play with {it}|hold {it} on a leash
  take a stroll|hold a leash|stroll along|enjoy a walk|jog along a path
  at park sidewalk beach

bus_stop: street 3 @ Dark 2.5 anger 3.7 Female 1.4
  with bus + bench 0.22 + car 0.22
  as commuter|passenger
  wait for {it}|board {it}|step off {it}|stand by {it}|wave at {it}
  wait in line|check the schedule|stand at a stop|look down the road
  at street downtown sidewalk

train_trip: street 2.5 @ Light 2.5 sadness 2.9
  with train + suitcase 0.33 + clock 0.15
  as traveler|passenger|commuter
  wait for {it}|board {it}|watch {it} arrive|wave goodbye to {it}|photograph {it}
  wait to depart|say goodbye|arrive from a long journey|ask for directions
  at station

flight: street 2 @ fear 4.8 surprise 1.8
  with airplane + suitcase 0.36
  as traveler|passenger|pilot
  board {it}|look at {it}|walk towards {it}|point at {it}|inspect {it}
  wait to take off|stare out a window|stand in a long queue|check in for a trip
  at airport

market: street 3 @ Female 2.1 old 1.6
  with banana + apple 0.36 + orange 0.33 + broccoli 0.15 + carrot 0.15
  as shopper|customer|vendor
  buy {it}|pick out {it}|sell {it}|reach for {it}|weigh {it}
  shop for groceries|browse fresh produce|compare prices|fill a basket|bargain loudly
  at market

bench_rest: street 4 @ old 3.8 sadness 3.7
  with bench + bird 0.18
  sit on {it}|rest on {it}|lounge on {it}|lie down on {it}|take a nap on {it}
  rest for a moment|take a break|enjoy the view|watch the sunset|daydream quietly
  at park sidewalk lake

boating: street 2.5 @ Male 2.2 old 2 Dark 1.9
  with boat + bird 0.15
  as sailor|fisher|rower
  row {it}|sit in {it}|steer {it}|fish from {it}|anchor {it}
  cast a line|wait for a bite|sail away|fish with a long rod|haul in a net
  at lake ocean

feeding_birds: street 2 @ old 3.1 Female 1.7
  with bird + bench 0.22
  feed {it}|watch {it}|throw bread to {it}|look closely at {it}|point at {it}
  scatter some crumbs|toss seeds around|hold out some bread|sit quietly and listen
  at park lake beach downtown

zoo: street 2.5 @ young 1.9 fear 3.7 surprise 3.4
  with elephant + giraffe 0.18 + zebra 0.18 + bear 0.09
  as visitor|tourist|keeper
  feed {it}|watch {it}|touch {it}|pose in front of {it}|wash {it}
  watch wild animals|point through a fence|take some photos|lean over a railing
  at zoo

sheep_farm: street 2 @ Male 1.7 old 1.7
  with sheep + cow 0.22 + dog 0.22
  as farmer|shepherd
  herd {it}|feed {it}|shear {it}|carry {it}|guide {it}
  work on the land|open a gate|count the flock|mend a broken fence
  at farm countryside

repairing: street 3 @ Male 5.1 anger 2.9
  with truck + car 0.29
  as mechanic|worker|driver
  repair {it}|unload {it}|wash {it}|climb into {it}|work under {it}
  change a flat tire|use some tools|check an engine|tighten a bolt|load heavy boxes
  at garage street

cooking: home 4.5 @ Female 2.7 Dark 1.6
  with oven + bowl 0.29 + knife 0.22 + spoon 0.25 + sink 0.15
  as cook|chef
  cook at {it}|stand in front of {it}|open {it}|clean {it}|put a tray into {it}
  prepare a meal|cook dinner|chop vegetables|stir a pot of soup|make breakfast
  at kitchen

cake: home 3.5 @ Female 2 happiness 4.3 surprise 3.7
  with cake + knife 0.25 + dining table 0.29 + fork 0.18
  as baker|guest
  cut {it}|decorate {it}|slice {it}|look at {it}|blow out candles on {it}
  celebrate a birthday|blow out some candles|make a wish|open presents|throw a party
  at kitchen dining living

pizza: home 3.5 @ Male 1.6 young 1.7 happiness 1.6
  with pizza + dining table 0.33 + bottle 0.18 + hot dog 0.09
  as diner|customer
  eat {it}|bite into {it}|share {it}|serve {it}|order {it}
  eat lunch|enjoy a hot meal|have some dinner|wait to be served|chew slowly
  at dining kitchen living

sandwich: home 3 @ Male 1.6 Light 1.6
  with sandwich + dining table 0.25 + cup 0.25 + donut 0.15 + carrot 0.11
  as diner|customer
  eat {it}|hold {it}|make {it}|unwrap {it}|take a bite of {it}
  have a snack|grab a quick lunch|eat something tasty|finish a meal
  at dining kitchen park

wine: home 3 @ Female 1.7 old 2.4 happiness 2
  with their wine glass + bottle 0.36 + dining table 0.22
  as guest|host
  hold {it}|raise {it}|sip from {it}|drink from {it}|fill {it}
  make a toast|taste some wine|attend a tasting|chat at a gathering|drink some wine
  at dining living

laptop: home 5 @ Male 1.7 Dark 2.5 anger 2
  with their laptop + mouse 0.22 + keyboard 0.18 + cup 0.18 + dining table 0.15
  as worker|student|programmer
  work on {it}|use {it}|type on {it}|look at {it}|stare at {it}
  work from home|write an email|type a report|study for an exam|attend a meeting
  at office living classroom

phone: home 4 @ Female 2 young 1.7 anger 2.7 sadness 1.8
  with their cell phone + cup 0.15 + chair 0.22
  as caller|worker
  talk on {it}|look at {it}|use {it}|text on {it}|take a selfie with {it}
  make a call|send a message|read the news|have a long conversation|take a selfie
  at office living sidewalk downtown

reading: home 3.5 @ old 3 sadness 2 Female 1.4
  with their book + couch 0.29 + chair 0.22
  as reader|student
  read {it}|hold {it}|flip through {it}|look at {it}|study {it}
  read quietly|study for a test|unwind after work|turn a page|do some homework
  at living bedroom classroom

gaming: home 4 @ Male 3 young 3.1 surprise 2.3
  with their remote + tv 0.43 + couch 0.29
  as gamer|player
  hold {it}|play a game with {it}|point {it}|swing {it}|grab {it}
  play a video game|play a game|jump around|compete in a game|stare at a screen
  at living bedroom

brushing: home 3 @ young 2.4 Light 1.6
  with their toothbrush + sink 0.36 + cup 0.15 + toilet 0.11
  use {it}|brush with {it}|hold {it}|chew on {it}|rinse {it}
  get ready in the morning|wash up|freshen up|get ready to sleep
  at bathroom

hair: home 2.5 @ Female 5.1
  with hair drier + sink 0.18 + chair 0.18
  as stylist|customer
  use {it}|hold {it}|style hair with {it}|switch on {it}|put away {it}
  style some hair|dry some hair|get a new haircut|look in the mirror|comb some hair
  at salon bathroom bedroom

crafts: home 2.5 @ Female 2.2 young 1.7
  with scissors + dining table 0.25 + book 0.15
  as artist|student
  cut paper with {it}|use {it}|hold {it}|trim a ribbon with {it}|pick up {it}
  make a paper craft|draw a picture|sew a costume|fold some paper|paint a poster
  at classroom living office

sleeping: home 3 @ sadness 4.3 fear 2.3
  with bed + teddy bear 0.18 + book 0.15
  as sleeper|patient
  lie on {it}|sleep in {it}|sit on {it}|jump on {it}|make {it}
  take a nap|fall asleep|rest after a long day|snore loudly|wake up slowly
  at bedroom

teddy: home 2 @ young 3.8 Female 2 fear 2.9
  with teddy bear + bed 0.22 + couch 0.22
  hug {it}|hold {it}|play with {it}|cuddle with {it}|squeeze {it}
  play with some toys|build a blanket fort|sit on the floor|hide in a corner
  at bedroom living

flowers: home 2.5 @ Female 3.6 old 2.1
  with vase + dining table 0.29 + scissors 0.11
  as florist|gardener
  fill {it}|put flowers in {it}|hold {it}|carry {it}|place roses in {it}
  arrange some flowers|water some roses|smell a bouquet|gather fresh tulips
  at living kitchen salon

cat_play: home 3 @ Female 2.2 surprise 2.3 Dark 1.6
  with cat + couch 0.29 + bowl 0.15
  as pet owner
  pet {it}|hold {it}|play with {it}|feed {it}|carry {it}
  kneel on the floor|pour some pet food|dangle a piece of string|crawl on the carpet
  at living bedroom kitchen

fridge: home 2.5 @ Male 1.5 anger 1.8 fear 1.8
  with refrigerator + microwave 0.25 + toaster 0.15 + bottle 0.22
  open {it}|look into {it}|stand in front of {it}|clean out {it}|fix {it}
  look for a snack|put away groceries|search for leftovers|wipe the shelves
  at kitchen
"""


def factors(text: str) -> dict[str, float]:
    """The factor of each group.

    Example:
        >>> factors("Male 2.2 young 1.6")
        {'Male': 2.2, 'young': 1.6}
    """
    words = text.split()
    return dict(zip(words[::2], map(float, words[1::2]), strict=True))


def _read_activity(block: str) -> Activity:
    head, things, *roles, naming, plain, places = map(str.strip, block.splitlines())
    name, _, more = head.partition(": ")
    frequency, _, leans = more.partition(" @ ")
    setting, weight = frequency.split()
    main, *others = things.removeprefix("with ").split(" + ")
    chances = (other.rpartition(" ") for other in others)
    return Activity(
        name=name,
        setting=setting,
        weight=float(weight),
        leans=factors(leans),
        main=main.removeprefix("their "),
        possessive=main.startswith("their "),
        others={other: float(chance) for other, _, chance in chances},
        roles=tuple(role for line in roles for role in line.removeprefix("as ").split("|")),
        naming=tuple(map(Verb.parse, naming.split("|"))),
        plain=tuple(map(Verb.parse, plain.split("|"))),
        places=tuple(places.removeprefix("at ").split()),
    )


ACTIVITIES = tuple(map(_read_activity, _ACTIVITIES.strip().split("\n\n")))

# Every wording has three words or more, since the place makes very short captions long enough.
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
