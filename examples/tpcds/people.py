"""TPC-DS's customers: their addresses, demographics, households and incomes.

The values that the queries ask for are frequent, so that each query finds rows in few of them.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa

from examples.tpcds.draw import FIRST_SK, Draw, identifier, rows

PLACES = (
    # county, state, offset from Greenwich in hundredths of an hour
    ("Williamson County", "TN", -500),
    ("Rush County", "IN", -500),
    ("Toole County", "GA", -500),
    ("Jefferson County", "KY", -500),
    ("Dona Ana County", "NM", -700),
    ("La Porte County", "IL", -600),
    ("Ziebach County", "TX", -600),
    ("Luce County", "OH", -500),
    ("Richland County", "VA", -500),
    ("Walker County", "MS", -600),
    ("Daviess County", "CA", -800),
    ("Barrow County", "WA", -800),
    ("Fairfield County", "OR", -700),
    ("Bronx County", "CO", -700),
    ("Orange County", "WI", -600),
    ("Franklin Parish", "LA", -600),
    ("Salem County", "GA", -700),
)
CITIES = ("Fairview", "Midway", "Edgewood", "Oak Grove", "Five Points", "Centerville")
ZIPS = ("35669", "10223", "85669", "86197", "10446", "88274", "83405", "10669", "86475", "85392", "10892", "85460", "80348", "81792")
"""Five of those that queries 15 and 45 ask for, and some of query 8's 400."""
EDUCATION = ("College", "Unknown", "Advanced Degree", "2 yr Degree", "4 yr Degree", "Primary", "Secondary")
_WANTED = (
    ("M", "S", "College"),
    ("F", "W", "Unknown"),
    ("F", "M", "Unknown"),
    ("M", "M", "Advanced Degree"),
    ("F", "W", "Advanced Degree"),
    ("M", "W", "2 yr Degree"),
    ("F", "D", "2 yr Degree"),
    ("M", "M", "4 yr Degree"),
    ("F", "S", "College"),
)
DEMOGRAPHICS, HOUSEHOLDS = 280, 240


def addresses(size: int) -> pa.Table:
    """So many addresses, with the first places more often."""
    draw = Draw("customer_address")
    where = [PLACES[i] for i in draw.skewed(size, len(PLACES), 0.6)]
    return rows(
        "customer_address",
        {
            "ca_address_sk": np.arange(1, size + 1),
            "ca_address_id": [identifier(n) for n in range(1, size + 1)],
            "ca_street_number": draw.whole(size, 1, 999).astype(str),
            "ca_street_name": draw.among(size, "Main", "Oak", "Park", "Elm", "7th"),
            "ca_street_type": draw.among(size, "Street", "Ave", "Blvd"),
            "ca_suite_number": draw.holes(draw.among(size, "Suite 10", "Suite A", "Suite 220")),
            "ca_city": draw.holes(draw.among(size, *CITIES)),
            "ca_county": [place[0] for place in where],
            "ca_state": draw.holes([place[1] for place in where]),
            "ca_zip": draw.holes(draw.among(size, *ZIPS, skew=0.8)),
            "ca_country": draw.holes(["United States"] * size),
            "ca_gmt_offset": draw.holes([place[2] for place in where]),
            "ca_location_type": draw.among(size, "apartment", "condo", "single family"),
        },
    )


def demographics() -> pa.Table:
    """Every gender, marital status and education four times; the first ones are those that the queries ask for."""
    all_of_them = [*product(("M", "F"), ("M", "S", "D", "W", "U"), EDUCATION)]
    ordered = [*_WANTED, *(one for one in all_of_them if one not in _WANTED)] * 4
    draw, size = Draw("customer_demographics"), DEMOGRAPHICS
    return rows(
        "customer_demographics",
        {
            "cd_demo_sk": np.arange(1, size + 1),
            "cd_gender": [one[0] for one in ordered],
            "cd_marital_status": [one[1] for one in ordered],
            "cd_education_status": [one[2] for one in ordered],
            "cd_purchase_estimate": draw.whole(size, 1, 8) * 500,
            "cd_credit_rating": draw.among(size, "Good", "Low Risk", "High Risk", "Unknown"),
            "cd_dep_count": draw.whole(size, 0, 6),
            "cd_dep_employed_count": draw.whole(size, 0, 6),
            "cd_dep_college_count": draw.whole(size, 0, 6),
        },
    )


def households() -> pa.Table:
    """Each income band and buying potential twice."""
    draw, size = Draw("household_demographics"), HOUSEHOLDS
    potentials = (">10000", "Unknown", "0-500", "501-1000", "1001-5000", "5001-10000")
    pairs = [*product(potentials, range(1, 21))] * 2
    return rows(
        "household_demographics",
        {
            "hd_demo_sk": np.arange(1, size + 1),
            "hd_income_band_sk": [band for _, band in pairs],
            "hd_buy_potential": [potential for potential, _ in pairs],
            "hd_dep_count": draw.among(size, 4, 6, 7, 3, 1, 2, 0, 5, 8, 9, skew=0.5),
            "hd_vehicle_count": draw.among(size, 1, 3, 2, 4, 0, -1, skew=0.5),
        },
    )


def incomes() -> pa.Table:
    """Twenty bands of 10,000 each."""
    bands = np.arange(20)
    return rows(
        "income_band",
        {"ib_income_band_sk": bands + 1, "ib_lower_bound": bands * 10_000 + (bands > 0), "ib_upper_bound": (bands + 1) * 10_000},
    )


def customers(size: int, addressed: int) -> pa.Table:
    """So many customers at some of the addresses; names occur several times, and every twentieth has no name."""
    draw = Draw("customer")
    first, last = ("Anna", "James", "Maria", "Robert", "Wei", "Olga"), ("Smith", "Garcia", "Chen", "Novak", "Brown", "Silva", "Khan")
    return rows(
        "customer",
        {
            "c_customer_sk": np.arange(1, size + 1),
            "c_customer_id": [identifier(n) for n in range(1, size + 1)],
            "c_current_cdemo_sk": draw.holes(draw.skewed(size, DEMOGRAPHICS) + 1),
            "c_current_hdemo_sk": draw.holes(draw.skewed(size, HOUSEHOLDS, 0.5) + 1),
            "c_current_addr_sk": draw.holes(draw.skewed(size, addressed, 0.3) + 1, 0.02),
            "c_first_shipto_date_sk": draw.holes(draw.whole(size, 0, 700) + FIRST_SK),
            "c_first_sales_date_sk": draw.holes(draw.whole(size, 0, 600) + FIRST_SK),
            "c_salutation": draw.holes(draw.among(size, "Mr.", "Ms.", "Dr.")),
            "c_first_name": draw.holes(draw.among(size, *first), 0.05),
            "c_last_name": draw.holes(draw.among(size, *last), 0.05),
            "c_preferred_cust_flag": draw.holes(draw.among(size, "Y", "Y", "N")),
            "c_birth_day": draw.whole(size, 1, 28),
            "c_birth_month": draw.holes(draw.whole(size, 1, 12)),
            "c_birth_year": draw.holes(draw.whole(size, 1930, 1990)),
            "c_birth_country": draw.holes(draw.among(size, "UNITED STATES", "CHILE", "FIJI", skew=1.0)),
            "c_login": draw.holes([f"user{n}" for n in range(size)], 0.5),
            "c_email_address": draw.holes([f"user{n}@example.com" for n in range(size)]),
            "c_last_review_date": draw.holes(draw.whole(size, 0, 2000) + FIRST_SK),
        },
    )
