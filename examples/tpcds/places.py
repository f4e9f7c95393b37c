"""TPC-DS's small dimensions: where and how things are sold, advertised, shipped and returned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from examples.tpcds.draw import FIRST_SK, Draw, identifier, rows
from examples.tpcds.people import CITIES, PLACES, ZIPS

STORES, CENTERS, SITES, PAGES, WAREHOUSES, CATALOG_PAGES, PROMOTIONS, REASONS, SHIP_MODES = 12, 4, 6, 10, 5, 20, 30, 35, 20


def _address(draw: Draw, prefix: str, size: int) -> dict[str, Any]:
    """An address each: three of four in Williamson County, Tennessee, which most queries ask for."""
    where = [PLACES[0] if home else PLACES[i] for home, i in zip(draw.chance(size, 0.75), draw.skewed(size, len(PLACES), 0.3), strict=True)]
    return {
        f"{prefix}_street_number": draw.whole(size, 1, 999).astype(str),
        f"{prefix}_street_name": draw.among(size, "Main", "Oak", "Park"),
        f"{prefix}_street_type": draw.among(size, "Street", "Ave"),
        f"{prefix}_suite_number": draw.among(size, "Suite 10", "Suite A"),
        f"{prefix}_city": draw.among(size, *CITIES[:3]),
        f"{prefix}_county": [place[0] for place in where],
        f"{prefix}_state": [place[1] for place in where],
        f"{prefix}_zip": draw.among(size, *ZIPS),
        f"{prefix}_country": ["United States"] * size,
        f"{prefix}_gmt_offset": [place[2] for place in where],
    }


def _numbered(prefix: str, key: str, size: int) -> dict[str, Any]:
    return {f"{prefix}_{key}_sk": np.arange(1, size + 1), f"{prefix}_{key}_id": [identifier(n) for n in range(1, size + 1)]}


def stores() -> pa.Table:
    draw = Draw("store")
    return rows(
        "store",
        {
            **_numbered("s", "store", STORES),
            "s_closed_date_sk": draw.holes([FIRST_SK + 400] * STORES, 0.8),
            "s_store_name": draw.among(STORES, "ese", "ought", "able", "bar", "eing"),
            "s_number_employees": draw.holes(draw.whole(STORES, 200, 300)),
            "s_floor_space": draw.whole(STORES, 5_000_000, 9_000_000),
            "s_hours": draw.among(STORES, "8AM-4PM", "8AM-12AM"),
            "s_manager": draw.among(STORES, "William Ward", "Scott Smith"),
            "s_market_id": draw.among(STORES, 8, 5, 2),
            "s_company_id": [1] * STORES,
            "s_company_name": ["Unknown"] * STORES,
            **_address(draw, "s", STORES),
            "s_tax_percentage": draw.whole(STORES, 0, 11),
        },
    )


def call_centers() -> pa.Table:
    draw = Draw("call_center")
    return rows(
        "call_center",
        {
            **_numbered("cc", "call_center", CENTERS),
            "cc_name": ["NY Metro", "Mid Atlantic", "Mid Atlantic", "North Midwest"],
            "cc_class": draw.among(CENTERS, "small", "large"),
            "cc_employees": draw.whole(CENTERS, 1, 7),
            "cc_manager": draw.among(CENTERS, "Bob Belcher", "Felipe Perkins"),
            "cc_mkt_id": draw.whole(CENTERS, 1, 6),
            **_address(draw, "cc", CENTERS),
            "cc_tax_percentage": draw.whole(CENTERS, 0, 11),
        },
    )


def web_sites() -> pa.Table:
    draw = Draw("web_site")
    return rows(
        "web_site",
        {
            "web_site_sk": np.arange(1, SITES + 1),
            "web_site_id": [identifier(n) for n in range(1, SITES + 1)],
            "web_name": ["site_0", "site_0", "site_0", "site_1", "site_1", "site_2"],
            "web_class": ["Unknown"] * SITES,
            "web_company_id": draw.whole(SITES, 1, 6),
            "web_company_name": ["pri", "able", "pri", "pri", "ought", "pri"],
            **_address(draw, "web", SITES),
            "web_tax_percentage": draw.whole(SITES, 0, 11),
        },
    )


def web_pages() -> pa.Table:
    draw = Draw("web_page")
    return rows(
        "web_page",
        {
            **_numbered("wp", "web_page", PAGES),
            "wp_autogen_flag": draw.among(PAGES, "N", "Y"),
            "wp_url": ["http://www.foo.com"] * PAGES,
            "wp_type": draw.among(PAGES, "order", "welcome", "feedback"),
            "wp_char_count": draw.holes(draw.among(PAGES, 5100, 5150, 2000, 6300)),
            "wp_link_count": draw.whole(PAGES, 2, 25),
        },
    )


def warehouses() -> pa.Table:
    draw = Draw("warehouse")
    names = ["Conventional childr", "Important issues liv", "Doors canno", "Bad cards must make.", None]
    return rows(
        "warehouse",
        {
            **_numbered("w", "warehouse", WAREHOUSES),
            "w_warehouse_name": names,
            "w_warehouse_sq_ft": draw.whole(WAREHOUSES, 50_000, 900_000),
            **_address(draw, "w", WAREHOUSES),
        },
    )


def catalog_pages() -> pa.Table:
    draw = Draw("catalog_page")
    return rows(
        "catalog_page",
        {
            **_numbered("cp", "catalog_page", CATALOG_PAGES),
            "cp_department": ["DEPARTMENT"] * CATALOG_PAGES,
            "cp_catalog_number": draw.whole(CATALOG_PAGES, 1, 9),
            "cp_catalog_page_number": np.arange(1, CATALOG_PAGES + 1),
            "cp_type": draw.among(CATALOG_PAGES, "monthly", "quarterly"),
        },
    )


def promotions() -> pa.Table:
    draw, size = Draw("promotion"), PROMOTIONS
    channels = ("dmail", "email", "catalog", "tv", "radio", "press", "event", "demo")
    return rows(
        "promotion",
        {
            **_numbered("p", "promo", size),
            "p_cost": [100_000] * size,
            "p_promo_name": draw.among(size, "ought", "able", "pri", "ese"),
            **{f"p_channel_{channel}": draw.holes(draw.among(size, "N", "N", "Y")) for channel in channels},
            "p_purpose": ["Unknown"] * size,
            "p_discount_active": ["N"] * size,
        },
    )


def reasons() -> pa.Table:
    return rows("reason", {**_numbered("r", "reason", REASONS), "r_reason_desc": [f"reason {n}" for n in range(1, REASONS + 1)]})


def ship_modes() -> pa.Table:
    draw, size = Draw("ship_mode"), SHIP_MODES
    return rows(
        "ship_mode",
        {
            **_numbered("sm", "ship_mode", size),
            "sm_type": draw.among(size, "REGULAR", "EXPRESS", "NEXT DAY", "OVERNIGHT", "LIBRARY"),
            "sm_code": draw.among(size, "AIR", "SURFACE", "SEA"),
            "sm_carrier": draw.among(size, "DHL", "BARIAN", "UPS", "FEDEX", "TBS"),
        },
    )
