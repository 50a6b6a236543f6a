"""Everyday words, written for this project: what a person would type first."""

from __future__ import annotations

EVERYDAY_WORDS = tuple(
    """
    ant bee cat cow dog eel fox hen owl pig rat bat bear bird calf crab crow deer duck fish frog goat hare
    lamb lion mole moth seal swan toad wolf worm camel eagle goose horse koala mouse otter panda robin sheep
    skunk snail snake spider tiger trout whale zebra beetle donkey falcon ferret lizard monkey parrot pigeon
    rabbit turkey turtle walrus buffalo dolphin giraffe hamster hedgehog kangaroo octopus ostrich
    penguin squirrel elephant butterfly crocodile
    egg ham jam pie tea bean beef cake corn fig kiwi leek lime meal milk nut pear plum rice salt soup apple
    bacon bread candy cream curry grape honey juice lemon mango melon olive onion pasta peach pepper pizza
    salad sugar toast banana butter carrot cheese cherry coffee cookie garlic ginger muffin orange potato
    radish raisin tomato walnut avocado biscuit cabbage coconut lettuce noodles pancake popcorn pudding
    pumpkin sausage spinach broccoli chestnut cucumber dumpling hazelnut marmalade mushroom sandwich
    strawberry watermelon pineapple raspberry blueberry chocolate
    bed box cup jar key lamp mug pan pen pot rug tap bell book bowl clock comb desk door fork knife mirror
    nail pipe plate ring rope sofa soap spoon table towel basket blanket bottle broom bucket button candle
    carpet chair cushion curtain drawer engine hammer kettle ladder napkin needle pencil pillow ribbon
    scissors shelf stapler teapot thimble toaster umbrella wallet window wardrobe telephone television
    sky sun ice sea star moon rain snow wind cloud storm river ocean island valley canyon desert forest
    garden meadow mountain volcano waterfall rainbow sunrise sunset thunder lightning winter spring summer
    autumn weather horizon earthquake
    red blue green pink gold brown black white grey purple yellow silver violet scarlet crimson
    arm ear eye leg toe chin foot hand knee nose neck skin elbow finger heart mouth thumb tooth tongue
    stomach shoulder eyebrow
    bus car van boat bike taxi tram train truck plane ferry rocket scooter tractor bicycle airplane
    submarine motorcycle helicopter
    run hop jump walk swim sing read write dance laugh smile sleep dream think learn teach paint climb
    listen whisper remember discover
    school teacher student lesson library history science physics biology chemistry geography
    mathematics language alphabet question answer homework
    house kitchen bedroom bathroom balcony chimney ceiling hallway stairs basement playground headlight
    village station airport harbour bridge castle market museum theatre hospital restaurant skyscraper
    doctor farmer painter baker singer dancer pilot sailor soldier lawyer writer actor builder gardener
    engineer carpenter firefighter photographer astronaut detective
    guitar piano violin trumpet drum flute melody rhythm orchestra concert
    happy sad angry brave calm eager gentle honest kind lucky proud quiet shy silly tired wise curious
    cheerful friendly generous beautiful wonderful
    level radar civic kayak noon refrigerator congratulations mississippi
    """.split()
)
