"""The differences between MySQL's character sets and Python's codecs of the same family, for every code.

A MySQL server (9.7) gave these tables. If a codec does not know a code and these tables do not name it, MySQL does not
know it either, and converts it to `?`. An entry `0xF9D6: "..."` gives the characters of consecutive codes, of which
0xF9D6 is the first.
https://dev.mysql.com/doc/refman/en/charset-charsets.html
"""

from __future__ import annotations

Runs = dict[int, str]

#: Sets with one byte a character: name -> (codec, bytes for which MySQL has other characters).
SINGLE_BYTE: dict[str, tuple[str, Runs]] = {
    "armscii8": (
        "latin-1",
        {
            0xA1: "\u2741\xa7\u0589)(\xbb\xab\u2014.\u055d,-\u055f\u2026\u055c\u055b\u055e\u0531\u0561\u0532\u0562"
            "\u0533\u0563\u0534\u0564\u0535\u0565\u0536\u0566\u0537\u0567\u0538\u0568\u0539\u0569\u053a\u056a"
            "\u053b\u056b\u053c\u056c\u053d\u056d\u053e\u056e\u053f\u056f\u0540\u0570\u0541\u0571\u0542\u0572"
            "\u0543\u0573\u0544\u0574\u0545\u0575\u0546\u0576\u0547\u0577\u0548\u0578\u0549\u0579\u054a\u057a"
            "\u054b\u057b\u054c\u057c\u054d\u057d\u054e\u057e\u054f\u057f\u0550\u0580\u0551\u0581\u0552\u0582"
            "\u0553\u0583\u0554\u0584\u0555\u0585\u0556\u0586\u2019'",
        },
    ),
    "cp1250": ("cp1250", {}),
    "cp1251": ("cp1251", {}),
    "cp1256": (
        "cp1256",
        {
            0x8A: "?",
            0x8F: "?",
            0x98: "?",
            0x9A: "?",
            0x9F: "?",
            0xAA: "?",
            0xC0: "?",
            0xFF: "?",
        },
    ),
    "cp1257": ("cp1257", {}),
    "cp850": ("cp850", {}),
    "cp852": ("cp852", {}),
    "cp866": (
        "cp866",
        {
            0xFC: "\u207f\xb2",
        },
    ),
    "dec8": (
        "latin-1",
        {
            0xA4: "?",
            0xA6: "?",
            0xA8: "\xa4",
            0xAC: "????",
            0xB4: "?",
            0xB8: "?",
            0xBE: "?",
            0xD0: "?",
            0xD7: "\u0152",
            0xDD: "\u0178?",
            0xF0: "?",
            0xF7: "\u0153",
            0xFD: "\xff??",
        },
    ),
    "geostd8": (
        "cp1252",
        {
            0x83: "?",
            0x88: "?",
            0x8A: "?",
            0x8C: "?",
            0x8E: "?",
            0x98: "???",
            0x9C: "?",
            0x9E: "??",
            0xC0: "\u10d0\u10d1\u10d2\u10d3\u10d4\u10d5\u10d6\u10f1\u10d7\u10d8\u10d9\u10da\u10db\u10dc\u10f2\u10dd"
            "\u10de\u10df\u10e0\u10e1\u10e2\u10f3\u10e3\u10e4\u10e5\u10e6\u10e7\u10e8\u10e9\u10ea\u10eb\u10ec"
            "\u10ed\u10ee\u10f4\u10ef\u10f0\u10f5???????????????????????\u2116??",
        },
    ),
    "greek": (
        "iso8859_7",
        {
            0xA1: "\u02bd\u02bc",
            0xA4: "??",
            0xAA: "?",
        },
    ),
    "hebrew": (
        "iso8859_8",
        {
            0xAF: "\u203e",
        },
    ),
    "hp8": ("hp_roman8", {}),
    "keybcs2": (
        "cp437",
        {
            0x80: "\u010c",
            0x83: "\u010f",
            0x85: "\u010e\u0164\u010d\u011b\u011a\u0139\xcd\u013e\u013a",
            0x8F: "\xc1",
            0x91: "\u017e\u017d",
            0x95: "\xd3\u016f\xda\xfd",
            0x9B: "\u0160\u013d\xdd\u0158\u0165",
            0xA4: "\u0148\u0147\u016e\xd4\u0161\u0159\u0155\u0154",
        },
    ),
    "koi8r": ("koi8_r", {}),
    "koi8u": (
        "koi8_u",
        {
            0x95: "\u2022",
        },
    ),
    "latin1": (
        "cp1252",
        {
            0x81: "\x81",
            0x8D: "\x8d",
            0x8F: "\x8f\x90",
            0x9D: "\x9d",
        },
    ),
    "latin2": ("iso8859_2", {}),
    "latin5": ("iso8859_9", {}),
    "latin7": ("iso8859_13", {}),
    "macce": ("mac_latin2", {}),
    "macroman": ("mac_roman", {}),
    "swe7": (
        "ascii",
        {
            0x40: "\xc9",
            0x5B: "\xc4\xd6\xc5\xdc",
            0x60: "\xe9",
            0x7B: "\xe4\xf6\xe5\xfc?",
        },
    ),
    "tis620": (
        "tis_620",
        {
            0xA0: "\ufffd",
            0xDB: "\ufffd\ufffd\ufffd\ufffd",
            0xFC: "\ufffd\ufffd\ufffd\ufffd",
        },
    ),
}  # fmt: skip


def _user_defined(first: int, character: int) -> Runs:
    """Ten rows of 94 codes from `first` on, for the private characters from `character` on."""
    return {
        first + (row << 8): "".join(map(chr, range(character + 94 * row, character + 94 * row + 94)))
        for row in range(10)
    }


_EUC_USER_DEFINED = _user_defined(0xF5A1, 0xE000) | _user_defined(0x8FF5A1, 0xE3AC)
_TWO = "[\\x40-\\x7e\\x80-\\xfe]"

#: Sets with up to four bytes a character: name -> (codec, pattern of the bytes of a character beyond ASCII, codes for
#: which MySQL has other characters).
MULTI_BYTE: dict[str, tuple[str, str, Runs]] = {
    "big5": (
        "big5",
        r"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
        {
            0xA15A: "\ufffd",
            0xA1C3: "\ufffd",
            0xA1C5: "\ufffd",
            0xA1FE: "\ufffd",
            0xA240: "\ufffd",
            0xA2CC: "\ufffd",
            0xA2CE: "\ufffd",
            0xF9D6: "\u7881\u92b9\u88cf\u58bb\u6052\u7ca7\u5afa",
        },
    ),
    "cp932": ("cp932", r"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\xa1-\xdf]", {}),
    "sjis": ("shift_jis", r"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\xa1-\xdf]", {0x815F: "\\"}),
    "euckr": ("cp949", r"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]", {}),
    "gb2312": ("gb2312", r"[\xa1-\xf7][\xa1-\xfe]", {}),
    "gbk": ("gbk", rf"[\x81-\xfe]{_TWO}", {}),
    "gb18030": (
        "gb18030",
        rf"[\x81-\xfe](?:{_TWO}|[\x30-\x39][\x81-\xfe][\x30-\x39])",
        {0xA8BC: "\u1e3f", 0x8135F437: "\ue7c7"},
    ),
    "ujis": (
        "euc_jp",
        r"[\xa1-\xfe][\xa1-\xfe]|\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe][\xa1-\xfe]",
        {0xA1C0: "\\"} | _EUC_USER_DEFINED,
    ),
    "eucjpms": (
        "euc_jp",
        r"[\xa1-\xfe][\xa1-\xfe]|\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe][\xa1-\xfe]",
        {
            0xA1C1: "\uff5e\u2225",
            0xA1DD: "\uff0d",
            0xA1F1: "\uffe0\uffe1",
            0xA2CC: "\uffe2",
            0xADA1: "\u2460\u2461\u2462\u2463\u2464\u2465\u2466\u2467\u2468\u2469\u246a\u246b\u246c\u246d\u246e\u246f"
            "\u2470\u2471\u2472\u2473\u2160\u2161\u2162\u2163\u2164\u2165\u2166\u2167\u2168\u2169?\u3349\u3314"
            "\u3322\u334d\u3318\u3327\u3303\u3336\u3351\u3357\u330d\u3326\u3323\u332b\u334a\u333b\u339c\u339d"
            "\u339e\u338e\u338f\u33c4\u33a1????????\u337b\u301d\u301f\u2116\u33cd\u2121\u32a4\u32a5\u32a6\u32a7"
            "\u32a8\u3231\u3232\u3239\u337e\u337d\u337c\u2252\u2261\u222b\u222e\u2211\u221a\u22a5\u2220\u221f"
            "\u22bf\u2235\u2229\u222a??",
            0x8FA2B7: "\uff5e",
            0x8FA2C3: "\uffe4",
            0x8FF3F3: "\u2170\u2171\u2172\u2173\u2174\u2175\u2176\u2177\u2178\u2179\u2160\u2161",
            0x8FF4A1: "\u2162\u2163\u2164\u2165\u2166\u2167\u2168\u2169\uff07\uff02\u3231\u2116\u2121\u70bb\u4efc\u50f4"
            "\u51ec\u5307\u5324\ufa0e\u548a\u5759\ufa0f\ufa10\u589e\u5bec\u5cf5\u5d53\ufa11\u5fb7\u6085\u6120"
            "\u654e\u663b\u6665\ufa12\uf929\u6801\ufa13\ufa14\u6a6b\u6ae2\u6df8\u6df2\u7028\ufa15\ufa16\u7501"
            "\u7682\u769e\ufa17\u7930\ufa18\ufa19\ufa1a\ufa1b\u7ae7\ufa1c\ufa1d\u7da0\u7dd6\ufa1e\u8362\ufa1f"
            "\u85b0\ufa20\ufa21\u8807\ufa22\u8b7f\u8cf4\u8d76\ufa23\ufa24\ufa25\u90de\ufa26\u9115\ufa27\ufa28"
            "\u9592\uf9dc\ufa29\u973b\u974d\u9751\ufa2a\ufa2b\ufa2c\u999e\u9ad9\u9b72\ufa2d\u9ed1",
        }
        | _EUC_USER_DEFINED,
    ),
}  # fmt: skip

#: Sets whose codes are Unicode's: name -> codec.
UNICODE = {"utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "ucs2": "utf-16-be"}
