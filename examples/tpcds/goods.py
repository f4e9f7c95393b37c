"""TPC-DS's items, and how many of them the warehouses hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from examples.tpcds.draw import Draw, identifier, rows, sk_of
from examples.tpcds.places import WAREHOUSES

CATEGORIES = ("Books", "Women", "Electronics", "Sports", "Men", "Music", "Jewelry", "Home", "Children", "Shoes")
CLASSES = ("reference", "accessories", "classical", "pants", "computers", "stereo", "football", "shirts", "birdal", "dresses")
COLORS = ("purple", "pale", "slate", "burlywood", "chiffon", "blanched", "powder", "floral", "khaki", "burnished", "white", "red")
_WANTED: tuple[Mapping[str, Any], ...] = (
    # what the queries ask for together: (columns of one item)
    {"i_manufact_id": 128},
    {"i_current_price": 110},
    {"i_current_price": 145},
    {"i_current_price": 99},
    {"i_manufact_id": 977},
    {"i_manufact_id": 350},
    {"i_current_price": 6800, "i_manufact_id": 677},
    {"i_current_price": 7950, "i_manufact_id": 940},
    {"i_current_price": 9100, "i_manufact_id": 129},
    {"i_current_price": 6300, "i_manufact_id": 270},
    {"i_manufact_id": 740, "i_category": "Women", "i_color": "powder", "i_units": "Ounce", "i_size": "medium"},
    {"i_manufact_id": 745, "i_category": "Men", "i_color": "floral", "i_units": "N/A", "i_size": "petite"},
    {"i_manufact_id": 750, "i_category": "Women", "i_color": "midnight", "i_units": "Gross", "i_size": "extra large"},
    {"i_manufact_id": 750, "i_category": "Home"},
    {"i_category": "Books", "i_class": "reference", "i_brand": "scholaramalgamalg #14"},
    {"i_category": "Children", "i_class": "portable", "i_brand": "exportiunivamalg #9"},
    {"i_category": "Women", "i_class": "accessories", "i_brand": "amalgimporto #1"},
    {"i_category": "Music", "i_class": "classical", "i_brand": "edu packscholar #1"},
    {"i_category": "Men", "i_class": "fragrances", "i_brand": "exportiimporto #1"},
    {"i_category": "Books", "i_class": "computers"},
    {"i_category": "Electronics", "i_class": "stereo"},
    {"i_category": "Sports", "i_class": "football"},
    {"i_category": "Men", "i_class": "shirts"},
    {"i_category": "Jewelry", "i_class": "birdal"},
    {"i_category": "Women", "i_class": "dresses"},
    {"i_category": "Women", "i_class": "maternity"},
    {"i_color": "purple", "i_current_price": 6600},
    {"i_color": "burlywood", "i_current_price": 7300},
    {"i_color": "floral", "i_current_price": 7000},
    {"i_color": "pale"},
    {"i_color": "chiffon"},
)
_MANAGERS = {0: 1, 1: 8, 2: 28}


def items(size: int) -> pa.Table:
    """So many items, two versions of each product; the wanted ones are spread among the others."""
    draw = Draw("item")
    category, kind = draw.skewed(size, len(CATEGORIES), 0.3), draw.skewed(size, len(CLASSES), 0.3)
    made = draw.whole(size, 1, 12)
    columns: dict[str, list[Any]] = {
        "i_item_sk": list(range(1, size + 1)),
        "i_item_id": [identifier(n // 2) for n in range(size)],
        "i_item_desc": draw.holes([f"Things that people buy {n // 3}" for n in range(size)]),
        "i_current_price": draw.holes(draw.whole(size, 50, 9999)),
        "i_wholesale_cost": draw.holes(draw.whole(size, 20, 7000)),
        "i_brand_id": (category * 1000 + kind * 10 + made % 3).tolist(),
        "i_brand": [f"brand{c}{k} #{m % 3}" for c, k, m in zip(category, kind, made, strict=True)],
        "i_class_id": (kind + 1).tolist(),
        "i_class": [CLASSES[k] for k in kind],
        "i_category_id": (category + 1).tolist(),
        "i_category": draw.holes([CATEGORIES[c] for c in category], 0.02),
        "i_manufact_id": draw.holes(made, 0.02),
        "i_manufact": [f"made{m}" for m in made],
        "i_size": draw.among(size, "medium", "small", "petite", "large", "N/A"),
        "i_color": draw.holes(draw.among(size, *COLORS)),
        "i_units": draw.among(size, "Oz", "Each", "Dozen", "Box"),
        "i_container": ["Unknown"] * size,
        "i_manager_id": [_MANAGERS.get(n % 8, int(m)) for n, m in enumerate(draw.whole(size, 2, 40))],
        "i_product_name": draw.holes([f"product{n}" for n in range(size)]),
    }
    for n, wanted in enumerate(_WANTED):
        for name, value in wanted.items():
            columns[name][n * (size // len(_WANTED))] = value
        if "i_manufact_id" in wanted:
            columns["i_manufact"][n * (size // len(_WANTED))] = f"made{wanted['i_manufact_id']}"
    return rows("item", columns)


def inventory(size: int, items_there: int) -> pa.Table:
    """Weekly counts of some items in some warehouses, most of them small: about so many rows of three years."""
    draw = Draw("inventory")
    first = sk_of("1999-01-03")
    grid = np.array(np.meshgrid(np.arange(156) * 7 + first, np.arange(items_there) + 1, np.arange(WAREHOUSES) + 1)).reshape(3, -1)
    winter = (grid[0] >= sk_of("2001-01-01")) & (grid[0] < sk_of("2001-03-01"))
    wanted = np.where(winter & (grid[1] % 4 == 0), 1.0, size / grid.shape[1])
    taken = grid[:, draw.random.random(grid.shape[1]) < wanted]
    count = (1000 * draw.random.random(taken.shape[1]) ** 6).astype(np.int64)
    columns = {"inv_date_sk": taken[0], "inv_item_sk": taken[1], "inv_warehouse_sk": taken[2], "inv_quantity_on_hand": draw.holes(count)}
    return rows("inventory", columns)
