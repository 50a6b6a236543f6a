"""Chinese sentences: what they mean in English, which word comes from where, and what is held out."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.tasks.grammars.chinese import (
    CHINESE,
    ENGLISH,
    PATTERNS,
    PROBES,
    ChineseRules,
    chinese,
    ways_with,
)
from transformer.tasks.grammars.telling import drawn, recognised

SEED_SENTENCE = "纽约是一座城市"

BY_HAND = """
identity     纽约是一座城市                   New York is a city
identity     北京是一座城市                   Beijing is a city
identity     埃及是一个国家                   Egypt is a country
identity     这是纽约                         this is New York
identity     那是意大利                       that is Italy
identity     这是一把雨伞                     this is an umbrella
identity     那是一匹马                       that is a horse
identity     这是一座山                       this is a mountain
description  巴黎是一座漂亮的城市             Paris is a beautiful city
description  罗马是一座古老的城市             Rome is an old city
description  纽约是一座大城市                 New York is a big city
description  纽约是一个有名的地方             New York is a famous place
description  中国是一个大国家                 China is a big country
description  这是一把很贵的雨伞               this is an expensive umbrella
description  这是一把红色的雨伞               this is a red umbrella
description  那是一张旧桌子                   that is an old table
description  那是一棵古老的树                 that is an old tree
negation     纽约不是一个国家                 New York is not a country
negation     法国不是一座城市                 France is not a city
negation     伦敦不是一座小城市               London is not a small city
negation     这不是一个苹果                   this is not an apple
negation     那不是一个大苹果                 that is not a big apple
negation     这三本书不贵                     these three books are not expensive
negation     那把椅子不旧                     that chair is not old
negation     上海不便宜                       Shanghai is not cheap
yes-no       伦敦是一座城市吗？               is London a city?
yes-no       伦敦是一座古老的城市吗？         is London an old city?
yes-no       东京是一个国家吗？               is Tokyo a country?
yes-no       那是一本词典吗？                 is that a dictionary?
yes-no       这两本书贵吗？                   are these two books expensive?
yes-no       这本书贵吗？                     is this book expensive?
yes-no       纽约大吗？                       is New York big?
yes-no       猫在椅子下面吗？                 is the cat under the chair?
yes-no       那四把雨伞在桌子上吗？           are those four umbrellas on the table?
yes-no       她昨天丢了一把钥匙吗？           did she lose a key yesterday?
yes-no       学生找到了两把钥匙吗？           did the student find two keys?
existence    桌子上有三本书                   there are three books on the table
existence    桌子上有一本书                   there is a book on the table
existence    椅子下面有一把黑色的雨伞         there is a black umbrella under the chair
existence    椅子下面有一把雨伞               there is an umbrella under the chair
existence    旧桌子旁边有两把椅子             there are two chairs next to the old table
existence    地图上有五个国家                 there are five countries on the map
existence    山上有一所古老的学校             there is an old school on the mountain
location     猫在椅子下面                     the cat is under the chair
location     红色的自行车在学校旁边           the red bicycle is next to the school
location     这张照片在书下面                 this photo is under the book
location     那两只鸟在树旁边                 those two birds are next to the tree
location     学校在山上                       the school is on the mountain
past         我昨天买了两本书                 I bought two books yesterday
past         他们去年卖了四辆汽车             they sold four cars last year
past         老师上周画了一朵白色的花         the teacher drew a white flower last week
past         女孩今天看见了三只漂亮的鸟       the girl saw three beautiful birds today
past         我们找到了一个苹果               we found an apple
past         你丢了五本词典                   you lost five dictionaries
past         男孩昨天买了两个盒子             the boy bought two boxes yesterday
predicate    这三本书很贵                     these three books are expensive
predicate    这本书很贵                       this book is expensive
predicate    那座新桥很漂亮                   that new bridge is beautiful
predicate    那五朵红色的花很小               those five red flowers are small
predicate    北京很古老                       Beijing is old
comparison   伦敦比巴黎大                     London is bigger than Paris
comparison   巴黎比伦敦小                     Paris is smaller than London
comparison   罗马比纽约漂亮                   Rome is more beautiful than New York
comparison   巴黎比柏林贵                     Paris is more expensive than Berlin
comparison   法国比德国有名                   France is more famous than Germany
comparison   这本书比那本词典新               this book is newer than that dictionary
comparison   那辆红色的汽车比这辆汽车便宜     that red car is cheaper than this car
comparison   那座桥比这座桥古老               that bridge is older than this bridge
relative     老师买的书很新                   the book that the teacher bought is new
relative     我昨天丢的旧钥匙很小             the old key that I lost yesterday is small
relative     女孩画的马很漂亮                 the horse that the girl drew is beautiful
relative     他们上周看见的红色的汽车很贵     the red car that they saw last week is expensive
relative     你找到的雨伞很旧                 the umbrella that you found is old
wh           她丢了什么？                     what did she lose?
wh           老师昨天买了什么？               what did the teacher buy yesterday?
wh           你看见了什么？                   what did you see?
wh           我们去年画了什么？               what did we draw last year?
ba           学生把雨伞丢了                   the student lost the umbrella
ba           他昨天把自行车卖了               he sold the bicycle yesterday
ba           女孩把这把椅子卖了               the girl sold this chair
ba           我把那两把红色的雨伞丢了         I lost those two red umbrellas
ba           男孩把猫找到了                   the boy found the cat
"""
SENTENCES = [tuple(line.split(maxsplit=2)) for line in BY_HAND.strip().splitlines()]

LINKED_BY_HAND = [
    ("纽约是一座城市", "New:纽约 York:纽约 is:是 a:一 city:城市"),
    ("这是一把很贵的雨伞", "this:这 is:是 an:一 expensive:贵 umbrella:雨伞"),
    ("巴黎是一座漂亮的城市", "Paris:巴黎 is:是 a:一 beautiful:漂亮 city:城市"),
    ("伦敦不是一座小城市", "London:伦敦 is:是 not:不 a:一 small:小 city:城市"),
    ("这三本书不贵", "these:这 three:三 books:书 are: not:不 expensive:贵"),
    ("伦敦是一座城市吗？", "is:是 London:伦敦 a:一 city:城市 ?:吗？"),
    ("这本红色的书贵吗？", "is: this:这 red:红色 book:书 expensive:贵 ?:吗？"),
    ("她昨天丢了一把钥匙吗？", "did:了 she:她 lose:丢 a:一 key:钥匙 yesterday:昨天 ?:吗？"),
    ("桌子上有三本书", "there:有 are:有 three:三 books:书 on:上 the: table:桌子"),
    ("猫在小椅子旁边", "the: cat:猫 is:在 next:旁边 to:旁边 the: small:小 chair:椅子"),
    ("老师上周买了两本书", "the: teacher:老师 bought:买了 two:两 books:书 last:上周 week:上周"),
    ("这三本书很贵", "these:这 three:三 books:书 are:很 expensive:贵"),
    ("伦敦比巴黎大", "London:伦敦 is: bigger:比大 than:比 Paris:巴黎"),
    ("伦敦比巴黎漂亮", "London:伦敦 is: more:比 beautiful:漂亮 than:比 Paris:巴黎"),
    ("老师买的书很新", "the: book:书 that:的 the: teacher:老师 bought:买 is:很 new:新"),
    ("她丢了什么？", "what:什么 did:了 she:她 lose:丢 ?:？"),
    ("学生把雨伞丢了", "the: student:学生 lost:丢了 the: umbrella:雨伞"),
]
WRONG = {
    "二 instead of 两": "我昨天买了二本书",
    "a measure word of another noun": "我昨天买了两只书",
    "no measure word": "我昨天买了两书",
    "a colour without 的": "这是一把红色雨伞",
    "很 where there is a comparison": "伦敦比巴黎很大",
    "很 where it is denied": "这三本书不很贵",
    "a question mark without 吗": "伦敦是一座城市？",
    "下面 before its place": "猫在下面椅子",
    "了 in a relative clause": "老师买了的书很新",
    "seeing with 把": "学生把雨伞看见了",
    "a colour after its noun": "这三本书很红色",
    "a thing beside its like": "书在书旁边",
    "a city that is bigger than a bigger one": "巴黎比伦敦大",
}


@cache
def corpus(adjectives=1):
    return chinese(None, adjectives)


@cache
def draws():
    """Sentences by chance, held out or not."""
    chance, rules = random.Random(11), ChineseRules(tuple(PATTERNS), 2)
    return [drawn(rules, CHINESE, ENGLISH, chance) for _ in range(3000)]


@cache
def trained(count=20_000):
    return corpus().drawn(np.random.default_rng(5), count)


def units(pairs):
    """All units of the sources, and of the targets."""
    sources = {unit for pair in pairs for unit in CHINESE.units(pair.source)}
    return sources, {unit for pair in pairs for unit in ENGLISH.units(pair.target)}


def as_written(pair):
    """Each English word with the characters that it is linked to, as in LINKED_BY_HAND."""
    source = CHINESE.units(pair.source)
    words = zip(ENGLISH.units(pair.target), pair.links, strict=True)
    return " ".join(f"{word}:{''.join(source[place] for place in links)}" for word, links in words)


@pytest.mark.parametrize(("pattern", "source", "target"), SENTENCES, ids=[row[1] for row in SENTENCES])
def test_a_sentence_translated_by_hand_is_translated_so(pattern, source, target):
    pair = corpus(2).find(source)
    assert pair is not None
    assert (pair.target, pair.pattern) == (target, pattern)


def test_every_pattern_has_sentences_and_links_made_by_hand():
    assert {pattern for pattern, _, _ in SENTENCES} == set(PATTERNS)
    linked = {corpus(2).find(source).pattern for source, _ in LINKED_BY_HAND}
    assert linked == set(PATTERNS)


@pytest.mark.parametrize(("source", "linked"), LINKED_BY_HAND, ids=[row[0] for row in LINKED_BY_HAND])
def test_words_are_linked_to_the_characters_that_a_person_would_link(source, linked):
    assert as_written(corpus(2).find(source)) == linked


def test_a_repeated_character_is_linked_where_it_is_meant():
    pair = corpus().find("我把这把椅子卖了")  # 0 我, 1 把, 2 这, 3 把, 4 椅, 5 子, 6 卖, 7 了
    assert pair.target == "I sold this chair"
    assert pair.links == ((0,), (6, 7), (2,), (4, 5))
    pair = corpus().find("他上周买的词典很便宜")  # 0 他, 1 上, 2 周, 3 买, 4 的, 5 词, 6 典, 7 很, 8 便, 9 宜
    assert pair.target == "the dictionary that he bought last week is cheap"
    assert pair.links == ((), (5, 6), (4,), (0,), (3,), (1, 2), (1, 2), (7,), (8, 9))


@pytest.mark.parametrize("source", WRONG.values(), ids=WRONG)
def test_wrong_chinese_is_not_recognised(source):
    assert corpus().find(source) is None


def test_of_two_adjectives_chinese_says_the_colour_first_and_english_last():
    pair = corpus(2).find("这是一把很贵的雨伞吗？")
    assert pair.target == "is this an expensive umbrella?"
    pair = corpus(2).find("女孩卖了四把红色的旧椅子")
    assert as_written(pair) == "the: girl:女孩 sold:卖了 four:四 old:旧 red:红色 chairs:椅子"
    assert corpus(1).find("女孩卖了四把红色的旧椅子") is None


@pytest.mark.parametrize("most", [0, 1, 2])
def test_no_sentence_has_more_adjectives_than_it_may(most):
    adjectives = (
        "big small new old expensive cheap beautiful famous red black white blue bigger smaller newer"
    )
    known = {*adjectives.split(), "older", "cheaper"}
    rules = ChineseRules(tuple(pattern for pattern in PATTERNS if ways_with(pattern, most)), most)
    chance = random.Random(3)
    counts = {
        sum(word in known for word in ENGLISH.units(drawn(rules, CHINESE, ENGLISH, chance).target))
        for _ in range(3000)
    }
    assert counts == set(range(most + 1))


def test_without_adjectives_the_patterns_about_one_are_left_out_and_refused_by_name():
    patterns = {pair.pattern for pair in chinese(None, 0).drawn(np.random.default_rng(2), 400)}
    assert patterns == set(PATTERNS) - {"description", "predicate", "comparison", "relative"}
    with pytest.raises(
        InputError, match="predicate: no such sentence without an adjective; allow at least 1"
    ):
        chinese(["wh", "predicate"], 0)


def test_a_typed_question_mark_full_stop_and_spaces_do_no_harm():
    read = corpus().read
    assert read("伦敦是一座城市吗?") == "伦敦是一座城市吗？"
    assert read(" 伦敦 是 一座 城市 吗 ？ ") == "伦敦是一座城市吗？"
    assert read("纽约是一座城市。") == SEED_SENTENCE
    assert corpus().find(read("她丢了什么?")).target == "what did she lose?"


def test_a_character_that_no_sentence_has_is_refused():
    with pytest.raises(InputError, match="龙"):
        corpus().read("这是一条龙")


def test_no_source_has_two_targets():
    rules = ChineseRules(tuple(PATTERNS), 2)
    targets = {}
    for pair in draws():
        assert targets.setdefault(pair.source, pair.target) == pair.target
    for pair in draws()[:400]:  # recognising is much slower than drawing
        assert recognised(rules, CHINESE, ENGLISH, pair.source) == [pair]


def test_each_target_unit_has_its_links():
    for pair in draws():
        source, target = CHINESE.units(pair.source), ENGLISH.units(pair.target)
        assert len(pair.links) == len(target)
        for links in pair.links:
            assert links == tuple(sorted(set(links)))
            assert set(links) <= set(range(len(source)))


def test_only_insertions_have_no_link_and_only_what_has_no_english_is_linked_to_nothing():
    for pair in draws():
        source, target = CHINESE.units(pair.source), ENGLISH.units(pair.target)
        bare = {word for word, links in zip(target, pair.links, strict=True) if not links}
        assert bare <= {"the", "is", "are"}, pair
        silent = {source[i] for i in set(range(len(source))) - {i for links in pair.links for i in links}}
        assert silent <= set("本张把辆只匹棵朵个所家座的很"), pair


def test_text_is_clean_and_its_units_are_the_text():
    for pair in draws():
        assert CHINESE.clean(pair.source) == pair.source
        assert ENGLISH.clean(pair.target) == pair.target
        assert "".join(CHINESE.units(pair.source)) == pair.source
        assert ENGLISH.joined(ENGLISH.units(pair.target)) == pair.target


def test_a_before_a_vowel_is_an_and_nowhere_else():
    seen = set()
    for pair in draws():
        target = ENGLISH.units(pair.target)
        for word, following in zip(target, target[1:], strict=False):
            if word in {"a", "an"}:
                seen.add(following)
                assert (word == "an") == (following[0] in "aeiou"), pair
    assert {"old", "expensive", "umbrella", "apple", "city"} <= seen


def test_two_is_never_written_as_the_digit_is_read():
    assert not [pair for pair in draws() if "二" in pair.source]
    assert [pair for pair in draws() if "两" in pair.source]


def test_every_pattern_is_as_likely_as_any_other():
    counts = [sum(pair.pattern == pattern for pair in draws()) for pattern in PATTERNS]
    assert sum(counts) == len(draws())
    # Nine in ten draws of a fair choice are within 25 of 250; none so far out as this.
    assert min(counts) > 185
    assert max(counts) < 315


def test_training_sees_nothing_that_is_held_out():
    held_out = {pair.source for pair in corpus().held_out()}
    assert len(held_out) == 1000
    assert not held_out & {pair.source for pair in trained()}
    assert not [pair for pair in trained() if pair.held_out]
    assert all(pair.held_out for pair in corpus().held_out())


def test_every_pattern_is_held_out_in_part_and_trained_in_part():
    assert {pair.pattern for pair in corpus().held_out()} == set(PATTERNS)
    assert {pair.pattern for pair in trained()} == set(PATTERNS)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_alone_holds_out_only_words_that_it_trains_on(pattern):
    chance, rules = random.Random(2), ChineseRules((pattern,), 1)
    alone = [drawn(rules, CHINESE, ENGLISH, chance) for _ in range(3000)]
    assert {pair.pattern for pair in alone} == {pattern}
    held_out = [pair for pair in alone if pair.held_out]
    assert len({pair.source for pair in held_out}) >= 5
    learned = units([pair for pair in alone if not pair.held_out])
    for some, all_ in zip(units(held_out), learned, strict=True):
        assert some <= all_


def test_every_character_and_word_is_trained_on():
    every, learned = units(draws()), units(trained())
    assert every == learned
    assert set(SEED_SENTENCE) <= learned[0]
    assert (len(learned[0]), len(learned[1])) == (135, 132)
    assert "New" in learned[1]
    assert "I" in learned[1]


def test_new_york_is_a_city_is_held_out_and_asked_first():
    assert corpus().held_out()[0].source == SEED_SENTENCE
    assert corpus().probes()[0] == SEED_SENTENCE
    assert corpus().find(SEED_SENTENCE).held_out
    assert SEED_SENTENCE not in {pair.source for pair in trained()}


def test_no_pattern_gives_away_that_new_york_is_a_city():
    given_away = [
        pair
        for pair in trained()
        if "New York" in pair.target and "city" in pair.target and pair.pattern != "comparison"
    ]
    assert not given_away
    assert corpus().find("纽约是一座城市吗？").held_out
    assert corpus().find("纽约是一座大城市").held_out
    assert corpus().find("纽约不是一座小城市").held_out
    patterns = {pair.pattern for pair in trained() if "纽约" in pair.source}
    assert {"identity", "description", "negation", "yes-no", "predicate", "comparison"} <= patterns


THINGS = "书本 词典本 照片张 桌子张 雨伞把 汽车辆 自行车辆 狗只 猫只 鸟只 马匹 盒子个".split()
TOGETHER = {
    "verb and object": (
        ("我{word}了一{measure}{thing}", "学生昨天把{thing}{word}了", "她{word}了五{measure}{thing}吗？"),
        ("卖", "丢", "找到"),
    ),
    "adjective and noun": (
        (
            "那是一{measure}{word}{thing}",
            "这{measure}{thing}很{word}",
            "那两{measure}{thing}不{word}",
            "这{measure}{thing}{word}吗？",
            "这{measure}{thing}比那{measure}{thing}{word}",
        ),
        ("大", "小", "新", "旧"),
    ),
    "thing and place": (
        ("{word}旁边有一{measure}{thing}", "{thing}在{word}旁边", "那{measure}{thing}在{word}旁边吗？"),
        ("树", "盒子", "书", "桌子", "椅子", "马"),
    ),
}


@pytest.mark.parametrize(("sentences", "words"), TOGETHER.values(), ids=TOGETHER)
def test_a_combination_is_held_out_in_all_patterns_or_in_none(sentences, words):
    held_out = []
    for word in words:
        for thing in THINGS:
            says = {"word": word, "thing": thing[:-1], "measure": thing[-1]}
            found = [corpus(1).find(sentence.format(**says)) for sentence in sentences]
            kept = {pair.held_out for pair in found if pair}
            assert len(kept) <= 1, found
            held_out += kept
    assert len(held_out) > 20
    assert 0 < sum(held_out) < len(held_out) / 2


def test_the_same_seed_draws_the_same_sentences_and_another_one_others():
    first, again, other = (corpus().drawn(np.random.default_rng(seed), 50) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert chinese(["wh"], 1).held_out() == chinese(["wh"], 1).held_out()


def test_each_pattern_has_a_question_to_begin_with():
    for pattern in PATTERNS:
        assert corpus(1).find(PROBES[pattern]).pattern == pattern
    assert chinese(["wh", "identity"], 1).probes()[:2] == (SEED_SENTENCE, PROBES["wh"])
    assert len(chinese(["wh"], 1).probes()) == len(corpus().probes()) == 5


def test_an_unknown_pattern_is_refused_and_the_known_ones_are_named():
    with pytest.raises(
        InputError, match="passive: no pattern of Chinese sentences; choose from identity, "
    ) as error:
        chinese(["past", "passive"], 1)
    assert error.value.field == "patterns"
    with pytest.raises(InputError, match="There is no pattern; choose from identity, "):
        chinese([], 1)
