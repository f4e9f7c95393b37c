"""TPC-DS's sales and returns of the three channels.

Few days, customers and items have most of the sales, so that the queries find rows; tickets and orders have up to 20 items; some foreign
keys and amounts are NULL. Half of the orders by catalog are of a customer and an item that was returned to a store, for the queries that
follow a customer from the one to the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from examples.tpcds import places
from examples.tpcds.draw import Draw, Numbers, rows, sk_of, weights
from examples.tpcds.people import DEMOGRAPHICS, HOUSEHOLDS

BUSY = [
    # days that the queries ask for
    *("1998-01-24", "1998-05-02", "1998-09-01", "1998-11-01", "1998-12-12", "1999-01-02", "1999-02-06", "1999-02-28", "1999-05-01"),
    *("1999-09-02", "1999-11-01", "1999-12-11", "2000-01-03", "2000-02-02", "2000-03-12", "2000-05-01", "2000-08-26", "2000-11-04"),
    *("2000-12-11", "2001-01-28", "2001-02-02", "2001-04-02", "2001-05-05", "2001-11-25", "2001-12-02", "2002-02-02", "2002-04-27"),
]
RETURNED = ("2000-06-29", "2000-09-28", "2000-11-16", "2001-08-01", "2002-05-05", "2000-08-30", "1998-11-05")
_LAST = sk_of("2002-12-31")
_FIRST = sk_of("1998-01-01")


@dataclass(frozen=True)
class Sizes:
    """How many rows there are; `tickets` and orders have seven items in the mean. The first ticket's number is `start`."""

    items: int = 186
    customers: int = 400
    addresses: int = 250
    tickets: int = 1200
    catalog_orders: int = 700
    web_orders: int = 500
    inventory: int = 12_000
    start: int = 1


@dataclass(frozen=True)
class Lines:
    """The lines of some orders. `order`: which order each line belongs to, from 0 on; `keys`: that of each order by what it points to."""

    order: Numbers
    item: Numbers
    quantity: Numbers
    keys: Mapping[str, Numbers]

    def of_order(self, name: str) -> Numbers:
        return self.keys[name][self.order]


def _lines(draw: Draw, orders: int, sizes: Sizes, wanted: Numbers | None = None) -> Lines:
    """The items of so many orders, each once; `wanted`: one item of each order (0: none)."""
    short, long = draw.skewed(orders, 6, 0.5) + 1, draw.whole(orders, 15, 20)
    counts = np.where(draw.chance(orders, 0.25), long, short)
    popular, chosen = weights(sizes.items, 0.7), []
    shuffled = np.random.default_rng(7).permutation(sizes.items) + 1
    for n, count in enumerate(counts):
        found = shuffled[draw.random.choice(sizes.items, size=count, replace=False, p=popular)]
        if wanted is not None and wanted[n] and wanted[n] not in found:
            found[0] = wanted[n]
        chosen.append(found)
    order = np.repeat(np.arange(orders), counts)
    total = len(order)
    quantity = np.where(draw.chance(total, 0.4), draw.whole(total, 1, 12), draw.whole(total, 1, 100))
    keys = {
        "date": _days(draw, orders, BUSY, 0.6),
        "time": draw.whole(orders, 7 * 60, 21 * 60) * 60,
        "customer": draw.skewed(orders, sizes.customers) + 1,
        "cdemo": draw.skewed(orders, DEMOGRAPHICS) + 1,
        "hdemo": draw.skewed(orders, HOUSEHOLDS, 0.5) + 1,
        "addr": draw.skewed(orders, sizes.addresses, 0.3) + 1,
        "other": draw.skewed(orders, sizes.customers) + 1,
    }
    return Lines(order, np.concatenate(chosen), quantity, keys)


def _days(draw: Draw, size: int, busy: Any, share: float) -> Numbers:
    chosen = np.array([sk_of(text) for text in busy])[draw.whole(size, 0, len(busy) - 1)]
    return np.where(draw.chance(size, share), chosen, draw.whole(size, _FIRST, _LAST))


def _amounts(draw: Draw, quantity: Numbers) -> dict[str, Numbers]:
    """Prices and what follows from them, in hundredths; of a few lines all prices are high and there is a profit."""
    size = len(quantity)
    rich = draw.chance(size, 0.05)
    cost = np.where(rich, draw.whole(size, 5000, 8000), draw.whole(size, 100, 10_000))
    listed = np.where(rich, 20_000, cost * draw.whole(size, 100, 200) // 100)
    price = np.where(rich, draw.whole(size, 14_000, 20_000), listed * draw.whole(size, 20, 100) // 100)
    sold = price * quantity
    coupon = np.where(draw.chance(size, 0.2) & ~rich, sold * draw.whole(size, 1, 50) // 100, 0)
    shipping, paid = listed * quantity * draw.whole(size, 0, 50) // 100, sold - coupon
    tax = paid * draw.whole(size, 0, 9) // 100
    return {
        "wholesale_cost": cost,
        "list_price": listed,
        "sales_price": price,
        "ext_discount_amt": (listed - price) * quantity,
        "ext_sales_price": sold,
        "ext_wholesale_cost": cost * quantity,
        "ext_list_price": listed * quantity,
        "ext_tax": tax,
        "coupon_amt": coupon,
        "ext_ship_cost": shipping,
        "net_paid": paid,
        "net_paid_inc_tax": paid + tax,
        "net_paid_inc_ship": paid + shipping,
        "net_paid_inc_ship_tax": paid + shipping + tax,
        "net_profit": paid - cost * quantity,
    }


def _returns(draw: Draw, lines: Lines, amounts: Mapping[str, Numbers]) -> tuple[Numbers, dict[str, Any]]:
    """Which lines come back (their positions), and what all channels know of it: columns without their prefix, in hundredths."""
    rich = amounts["list_price"] == 20_000
    at = np.flatnonzero(draw.random.random(len(lines.item)) < np.where(rich, 0.5, 0.12))
    size = len(at)
    count = np.where(rich[at] | draw.chance(size, 0.4), lines.quantity[at], 1 + lines.quantity[at] * draw.whole(size, 0, 99) // 100)
    amount = count * amounts["sales_price"][at]
    fee, shipping = draw.whole(size, 50, 10_000), amount * draw.whole(size, 0, 50) // 100
    cash = amount * draw.whole(size, 0, 100) // 100
    soon = np.minimum(lines.of_order("date")[at] + draw.whole(size, 1, 130), _LAST)
    known = {
        "date": np.where(draw.chance(size, 0.8), soon, np.maximum(_days(draw, size, RETURNED, 1.0), lines.of_order("date")[at])),
        "time": draw.whole(size, 7 * 60, 21 * 60) * 60,
        "reason_sk": draw.holes(np.where(draw.chance(size, 0.2), 28, draw.whole(size, 1, places.REASONS))),
        "return_quantity": draw.holes(count),
        "amount": draw.holes(amount),
        "return_tax": amount * 5 // 100,
        "return_amt_inc_tax": amount + amount * 5 // 100,
        "fee": fee,
        "return_ship_cost": shipping,
        "refunded_cash": draw.holes(cash),
        "reversed_charge": (amount - cash) // 2,
        "credit": amount - cash - (amount - cash) // 2,
        "net_loss": fee + shipping,
    }
    return at, known


def _money(draw: Draw, prefix: str, amounts: Mapping[str, Numbers], shipped: bool) -> dict[str, Any]:
    return {f"{prefix}_{name}": draw.holes(value, 0.02) for name, value in amounts.items() if shipped or "ship" not in name}


def _once(draw: Draw, lines: Lines, keys: Numbers, share: float = 0.03) -> list[Any]:
    """What each order points to, NULL for a share of the orders."""
    return [None if hole else int(key) for key, hole in zip(keys[lines.order], draw.chance(len(keys), share)[lines.order], strict=True)]


def _mostly(draw: Draw, keys: Numbers, others: Numbers, share: float) -> Numbers:
    return np.where(draw.chance(len(keys), share), others, keys)


def store(sizes: Sizes) -> dict[str, pa.Table]:
    """store_sales and store_returns."""
    draw = Draw(f"store {sizes.start}")
    lines = _lines(draw, sizes.tickets, sizes)
    amounts, ticket = _amounts(draw, lines.quantity), lines.order + sizes.start
    keys, total = lines.keys, len(lines.item)
    shop = draw.skewed(sizes.tickets, places.STORES, 0.5) + 1
    sold = {
        "ss_sold_date_sk": _once(draw, lines, keys["date"], 0.02),
        "ss_sold_time_sk": _once(draw, lines, keys["time"]),
        "ss_item_sk": lines.item,
        "ss_customer_sk": _once(draw, lines, keys["customer"]),
        "ss_cdemo_sk": _once(draw, lines, keys["cdemo"]),
        "ss_hdemo_sk": _once(draw, lines, keys["hdemo"]),
        "ss_addr_sk": _once(draw, lines, keys["addr"]),
        "ss_store_sk": _once(draw, lines, shop),
        "ss_promo_sk": draw.holes(draw.whole(total, 1, places.PROMOTIONS), 0.1),
        "ss_ticket_number": ticket,
        "ss_quantity": draw.holes(lines.quantity),
        **_money(draw, "ss", amounts, shipped=False),
    }
    at, known = _returns(draw, lines, amounts)
    back = {
        "sr_returned_date_sk": draw.holes(known.pop("date")),
        "sr_return_time_sk": known.pop("time"),
        "sr_item_sk": lines.item[at],
        "sr_customer_sk": draw.holes(_mostly(draw, lines.of_order("customer")[at], lines.of_order("other")[at], 0.1)),
        "sr_cdemo_sk": draw.holes(lines.of_order("cdemo")[at]),
        "sr_hdemo_sk": draw.holes(lines.of_order("hdemo")[at]),
        "sr_addr_sk": draw.holes(lines.of_order("addr")[at]),
        "sr_store_sk": draw.holes(_mostly(draw, shop[lines.order][at], draw.whole(len(at), 1, places.STORES), 0.1)),
        "sr_ticket_number": ticket[at],
        "sr_return_amt": known.pop("amount"),
        "sr_store_credit": known.pop("credit"),
        **{f"sr_{name}": value for name, value in known.items()},
    }
    return {"store_sales": rows("store_sales", sold), "store_returns": rows("store_returns", back)}


def _followed(draw: Draw, lines: Lines, returns: pa.Table, wanted: NDArray[np.int64]) -> None:
    """Make the orders whose `wanted` is a row of the returns (from 1 on) one of its customer, soon after it."""
    customers, days = (returns[name].to_pylist() for name in ("sr_customer_sk", "sr_returned_date_sk"))
    for order in np.flatnonzero(wanted):
        customer, since = customers[wanted[order] - 1], days[wanted[order] - 1]
        if customer is not None and since is not None:
            lines.keys["customer"][order], lines.keys["date"][order] = customer, min(since + int(draw.whole(1, 0, 60)[0]), _LAST)


def _ordered(draw: Draw, prefix: str, lines: Lines) -> dict[str, Any]:
    """What orders by catalog and by web have in common: who pays, who gets it, when and from where."""
    keys, total = lines.keys, len(lines.item)
    given = draw.chance(len(keys["date"]), 0.2)
    shipped = np.minimum(lines.of_order("date") + draw.whole(total, 1, 130), _LAST)
    both = {"customer": keys["other"], "cdemo": keys["cdemo"][::-1], "hdemo": keys["hdemo"][::-1], "addr": keys["addr"][::-1]}
    return {
        f"{prefix}_sold_date_sk": _once(draw, lines, keys["date"], 0.02),
        f"{prefix}_sold_time_sk": _once(draw, lines, keys["time"]),
        f"{prefix}_ship_date_sk": draw.holes(shipped),
        **{f"{prefix}_bill_{name}_sk": _once(draw, lines, keys[name]) for name in both},
        **{f"{prefix}_ship_{name}_sk": _once(draw, lines, np.where(given, other, keys[name])) for name, other in both.items()},
        f"{prefix}_ship_mode_sk": draw.holes(draw.whole(total, 1, places.SHIP_MODES)),
        f"{prefix}_warehouse_sk": draw.holes(draw.skewed(total, places.WAREHOUSES, 0.5) + 1),
        f"{prefix}_item_sk": lines.item,
        f"{prefix}_promo_sk": draw.holes(draw.whole(total, 1, places.PROMOTIONS), 0.1),
        f"{prefix}_quantity": draw.holes(lines.quantity),
    }


def _came_back(draw: Draw, prefix: str, lines: Lines, at: Numbers) -> dict[str, Any]:
    """Who sent lines back and who got the money: most often the same."""
    found: dict[str, Any] = {}
    for name in ("customer", "cdemo", "hdemo", "addr"):
        keys = lines.of_order(name)[at]
        found[f"{prefix}_refunded_{name}_sk"] = draw.holes(keys)
        found[f"{prefix}_returning_{name}_sk"] = draw.holes(_mostly(draw, keys, keys[::-1], 0.15))
    return found


def catalog(sizes: Sizes, store_returns: pa.Table) -> dict[str, pa.Table]:
    """catalog_sales and catalog_returns."""
    draw = Draw(f"catalog {sizes.start}")
    size = sizes.catalog_orders
    after = np.where(draw.chance(size, 0.5), draw.whole(size, 1, store_returns.num_rows), 0)
    came = np.array([0, *store_returns["sr_item_sk"].to_pylist()])
    lines = _lines(draw, size, sizes, came[after])
    _followed(draw, lines, store_returns, after)
    amounts, order, total = _amounts(draw, lines.quantity), lines.order + sizes.start, len(lines.item)
    center, page = draw.skewed(size, places.CENTERS) + 1, draw.skewed(total, places.CATALOG_PAGES, 0.5) + 1
    sold = {
        **_ordered(draw, "cs", lines),
        "cs_call_center_sk": _once(draw, lines, center),
        "cs_catalog_page_sk": draw.holes(page),
        "cs_order_number": order,
        **_money(draw, "cs", amounts, shipped=True),
    }
    at, known = _returns(draw, lines, amounts)
    back = {
        "cr_returned_date_sk": known.pop("date"),
        "cr_returned_time_sk": known.pop("time"),
        "cr_item_sk": lines.item[at],
        **_came_back(draw, "cr", lines, at),
        "cr_call_center_sk": draw.holes(center[lines.order][at]),
        "cr_catalog_page_sk": draw.holes(page[at]),
        "cr_order_number": order[at],
        "cr_return_amount": known.pop("amount"),
        "cr_store_credit": known.pop("credit"),
        **{f"cr_{name}": value for name, value in known.items()},
    }
    return {"catalog_sales": rows("catalog_sales", sold), "catalog_returns": rows("catalog_returns", back)}


def web(sizes: Sizes) -> dict[str, pa.Table]:
    """web_sales and web_returns."""
    draw = Draw(f"web {sizes.start}")
    lines = _lines(draw, sizes.web_orders, sizes)
    amounts, order, total = _amounts(draw, lines.quantity), lines.order + sizes.start, len(lines.item)
    page = draw.whole(total, 1, places.PAGES)
    sold = {
        **_ordered(draw, "ws", lines),
        "ws_web_page_sk": draw.holes(page),
        "ws_web_site_sk": _once(draw, lines, draw.skewed(sizes.web_orders, places.SITES, 0.5) + 1),
        "ws_order_number": order,
        **_money(draw, "ws", amounts, shipped=True),
    }
    at, known = _returns(draw, lines, amounts)
    back = {
        "wr_returned_date_sk": known.pop("date"),
        "wr_returned_time_sk": known.pop("time"),
        "wr_item_sk": lines.item[at],
        **_came_back(draw, "wr", lines, at),
        "wr_web_page_sk": draw.holes(page[at]),
        "wr_order_number": order[at],
        "wr_return_amt": known.pop("amount"),
        "wr_account_credit": known.pop("credit"),
        **{f"wr_{name}": value for name, value in known.items()},
    }
    return {"web_sales": rows("web_sales", sold), "web_returns": rows("web_returns", back)}
