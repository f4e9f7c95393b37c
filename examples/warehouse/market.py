"""The market of the warehouse as SELECTs: lines of the financial newswire (FINWIRE), daily prices, and the reference tables."""

from __future__ import annotations

from collections.abc import Iterator

from examples.warehouse.shape import BATCH_DAYS, DAY, FOUNDED, LOADED, OPENED, STARTED, Shape, chosen, period

INDUSTRIES = ("AM", "BK", "CH", "DR", "EN", "FD", "GD", "HC", "IT", "MT")
_QUARTERS = 22
"""Each company's reports before the historical load, from the first quarter of 2012 on."""


def finwire(shape: Shape, batch: int) -> str:
    """FINWIRE: lines of fixed columns; companies (CMP), securities (SEC) and financial reports (FIN)."""
    return "\nUNION ALL\n".join(_historical(shape) if batch == 1 else _incremental(shape, batch))


def _historical(shape: Shape) -> Iterator[str]:
    yield _companies(shape, f"range({shape.companies})", 0, (FOUNDED, FOUNDED + 365 * DAY))
    yield _companies(shape, f"(SELECT id FROM range({shape.companies}) WHERE id % 2 = 0)", 1, (OPENED, LOADED))
    yield _securities(shape, f"range({shape.symbols})", 0, (FOUNDED + 730 * DAY, OPENED))
    yield _securities(shape, f"(SELECT id FROM range({shape.symbols}) WHERE id % 4 = 1)", 1, (STARTED, LOADED))
    yield _reports(shape, f"(SELECT id % {shape.companies} AS id, id div {shape.companies} AS q FROM range({shape.companies * _QUARTERS}))")


def _incremental(shape: Shape, batch: int) -> Iterator[str]:
    start, seconds = period(batch)
    now, reports = (start, start + seconds), max(1, shape.companies // 5)
    yield _companies(shape, chosen(shape.companies, batch, 1), batch, now)
    yield _securities(shape, chosen(shape.symbols, batch, 2), batch, now)
    first = (batch - 2) * reports
    yield _reports(
        shape,
        f"(SELECT id % {shape.companies} AS id, {_QUARTERS} + id div {shape.companies} AS q FROM range({first}, {first + reports}))",
    )


def _fields(*fields: tuple[str, int]) -> str:
    """The text of some expressions in columns of fixed widths."""
    return "concat(" + ", ".join(f"rpad({value}, {width}, ' ')" for value, width in fields) + ") AS line"


def _posted(shape: Shape, salt: str, within: tuple[int, int]) -> str:
    start, end = within
    return f"date_format(timestamp_seconds({start} + {shape.random('id', salt, end - start)}), 'yyyyMMdd-HHmmss')"


def _cik(company: str) -> str:
    return f"lpad({company} + 1000, 10, '0')"


def _name(company: str) -> str:
    return f"concat('Company ', {company}, ' Inc')"


def _companies(shape: Shape, those: str, version: int, within: tuple[int, int]) -> str:
    key = f"id * 100 + {version}"
    line = _fields(
        (_posted(shape, f"company {version}", within), 15),
        ("'CMP'", 3),
        (_name("id"), 60),
        (_cik("id"), 10),
        (f"CASE WHEN {shape.random(key, 'status', 30)} = 0 THEN 'INAC' ELSE 'ACTV' END", 4),
        (shape.among("id", "industry", *INDUSTRIES), 2),
        (shape.among(key, "rating", "AAA", "AA", "A+", "BBB", "BB-", "CCC", "D"), 4),
        (f"date_format(date_sub(DATE'2007-01-01', CAST({shape.random('id', 'founded', 30_000)} AS INT)), 'yyyyMMdd')", 8),
        ("concat(id, ' Market Street')", 80),
        ("''", 80),
        ("lpad(id % 100000, 5, '0')", 12),
        (shape.among("id", "company city", "Boston", "Chicago", "Denver"), 25),
        (shape.among("id", "company state", "MA", "IL", "CO"), 20),
        ("'United States of America'", 24),
        (f"concat('Chief ', {shape.random(key, 'ceo', 1000)})", 46),
        ("concat('What company ', id, ' does')", 150),
    )
    return f"SELECT {line} FROM {those}"


def _securities(shape: Shape, those: str, version: int, within: tuple[int, int]) -> str:
    """The company is named by its number (CIK) in every other security, else by its name."""
    key, company = f"id * 100 + {version}", f"(id % {shape.companies})"
    line = _fields(
        (_posted(shape, f"security {version}", within), 15),
        ("'SEC'", 3),
        (symbol("id"), 15),
        (shape.among("id", "issue", "COMMON", "PREF_A", "PREF_B"), 6),
        ("'ACTV'", 4),
        ("concat('Security ', id)", 70),
        (shape.among("id", "exchange", "NYSE", "NASDAQ", "AMEX", "PCX"), 6),
        (f"CAST(1000000 + {shape.random(key, 'shares', 90_000_000)} AS STRING)", 13),
        ("'20070102'", 8),
        ("'20070301'", 8),
        (f"CAST(CAST({shape.random(key, 'dividend', 900)} / 100 AS DECIMAL(10, 2)) AS STRING)", 12),
        (f"CASE WHEN id % 2 = 0 THEN {_cik(company)} ELSE {_name(company)} END", 60),
    )
    return f"SELECT {line} FROM {those}"


def _reports(shape: Shape, those: str) -> str:
    key, starts = "id * 1000 + q", "add_months(DATE'2012-01-01', CAST(3 * q AS INT))"

    def amount(salt: str, most: int) -> str:
        return f"CAST(CAST({shape.random(key, salt, most * 100)} / 100 AS DECIMAL(15, 2)) AS STRING)"

    line = _fields(
        (f"date_format(date_add({starts}, 95), 'yyyyMMdd-120000')", 15),
        ("'FIN'", 3),
        (f"CAST(year({starts}) AS STRING)", 4),
        (f"CAST(quarter({starts}) AS STRING)", 1),
        (f"date_format({starts}, 'yyyyMMdd')", 8),
        (f"date_format(date_add({starts}, 95), 'yyyyMMdd')", 8),
        (amount("revenue", 900_000_000), 17),
        (amount("earnings", 90_000_000), 17),
        (amount("eps", 9), 12),
        (amount("diluted", 8), 12),
        (amount("margin", 1), 12),
        (amount("inventory", 9_000_000), 17),
        (amount("assets", 990_000_000), 17),
        (amount("liability", 500_000_000), 17),
        (f"CAST(1000000 + {shape.random('id', 'outstanding', 90_000_000)} AS STRING)", 13),
        (f"CAST(1000000 + {shape.random('id', 'diluted outstanding', 90_000_000)} AS STRING)", 13),
        (f"CASE WHEN (id + q) % 2 = 0 THEN {_cik('id')} ELSE {_name('id')} END", 60),
    )
    return f"SELECT {line} FROM {those}"


def symbol(number: str) -> str:
    """The symbol of a security by its number."""
    return f"concat('SYM', lpad({number}, 6, '0'))"


def daily_market(shape: Shape, batch: int) -> str:
    """DailyMarket: key (dm_date, dm_s_symb); a row a security a day of trading."""
    start, seconds = period(batch)
    return f"""
    SELECT CAST(day AS STRING) AS dm_date, {symbol("s")} AS dm_s_symb, CAST(price AS DECIMAL(8, 2)) AS dm_close,
      CAST(price + {shape.random("key", "high", 300)} / 100 AS DECIMAL(8, 2)) AS dm_high,
      CAST(price - {shape.random("key", "low", 300)} / 100 AS DECIMAL(8, 2)) AS dm_low,
      1000 + {shape.random("key", "volume", 1_000_000)} AS dm_vol
    FROM (
      SELECT s, day, s * 100000 + unix_date(day) AS key,
        {price(shape, "s")} + {shape.random("s * 100000 + unix_date(day)", "close", 2000)} / 100 AS price
      FROM (
        SELECT id % {shape.symbols} AS s, CAST(timestamp_seconds({start} + (id div {shape.symbols}) * {DAY}) AS DATE) AS day
        FROM range({shape.symbols * (seconds // DAY)})
      ) WHERE weekday(day) < 5
    )"""


def price(shape: Shape, number: str) -> str:
    """About what a security costs."""
    return f"(20 + {shape.random(number, 'price', 180)})"


def corrected_prices(shape: Shape, batch: int) -> str:
    """A few prices of the last week before a batch that were wrong: (dm_date, dm_s_symb)."""
    start, _ = period(batch)
    return f"""
    SELECT CAST(CAST(timestamp_seconds({start} - (1 + id % {BATCH_DAYS - 1}) * {DAY}) AS DATE) AS STRING) AS dm_date,
      {symbol("id")} AS dm_s_symb
    FROM {chosen(shape.symbols, batch, 3)}"""


def reference(shape: Shape) -> dict[str, str]:
    """The tables that do not change; `time` has a row a minute (the specification's has one a second)."""
    industries = ", ".join(f"('{name}', 'Industry {name}', 'SC{at % 4}')" for at, name in enumerate(INDUSTRIES))
    return {
        "industry": f"SELECT * FROM VALUES {industries} AS t(in_id, in_name, in_sc_id)",
        "status_type": """SELECT * FROM VALUES ('ACTV', 'Active'), ('CMPT', 'Completed'), ('CNCL', 'Canceled'), ('PNDG', 'Pending'),
            ('SBMT', 'Submitted'), ('INAC', 'Inactive') AS t(st_id, st_name)""",
        "trade_type": """SELECT * FROM VALUES ('TMB', 'Market Buy', 0, 1), ('TMS', 'Market Sell', 1, 1), ('TSL', 'Stop Loss', 1, 0),
            ('TLS', 'Limit Sell', 1, 0), ('TLB', 'Limit Buy', 0, 0) AS t(tt_id, tt_name, tt_is_sell, tt_is_mrkt)""",
        "tax_rate": """SELECT tx_id, tx_name, CAST(tx_rate AS DECIMAL(6, 5)) AS tx_rate
            FROM VALUES ('US1', 'U.S. Income Tax Bracket 1', 0.15), ('US2', 'U.S. Income Tax Bracket 2', 0.275),
            ('US3', 'U.S. Income Tax Bracket 3', 0.305), ('CA1', 'Canada Bracket 1', 0.2),
            ('CA2', 'Canada Bracket 2', 0.31) AS t(tx_id, tx_name, tx_rate)""",
        "date": """SELECT CAST(date_format(day, 'yyyyMMdd') AS INT) AS sk_date_id, day AS date_value,
              year(day) AS calendar_year_id, concat(year(day), ' Q', quarter(day)) AS calendar_qtr_desc,
              year(day) * 100 + month(day) AS calendar_month_id, date_format(day, 'yyyy MMMM') AS calendar_month_desc,
              weekday(day) + 1 AS day_of_week_num, year(add_months(day, 6)) AS fiscal_year_id,
              month(day) = 1 AND day(day) = 1 OR month(day) = 12 AND day(day) = 25 AS holiday_flag
            FROM (SELECT explode(sequence(DATE'2007-01-01', DATE'2018-12-31')) AS day)""",
        "time": """SELECT CAST(id div 60 * 100 + id % 60 AS INT) AS sk_time_id,
              concat_ws(':', lpad(id div 60, 2, '0'), lpad(id % 60, 2, '0')) AS time_value,
              CAST(id div 60 AS INT) AS hour_id, CAST(id % 60 AS INT) AS minute_id,
              id BETWEEN 570 AND 959 AS market_hours_flag, id BETWEEN 420 AND 1199 AS office_hours_flag
            FROM range(1440)""",
    }
