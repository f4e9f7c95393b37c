"""What is traded, as SELECTs: trades and their history, cash transactions, holdings and watches.

A trade opens in one batch. The last hundredth of the historical load, and half of the trades of a later batch, are still open at its
end, and close in the next one.
"""

from __future__ import annotations

from examples.warehouse.market import price, symbol
from examples.warehouse.people import account_of
from examples.warehouse.shape import DAY, Shape, born, chosen, ids, period, share, text_of


def _traded(shape: Shape, batch: int) -> str:
    """The trades that open in a batch: what the tables say of them, and `stays_open`."""
    first, end = born(shape.trades, batch)
    start, seconds = period(batch)
    opened = f"{start} + (id - {first}) * {seconds} div {end - first}"
    stays_open = f"id >= {end - share(shape.trades)}" if batch == 1 else f"{shape.random('id', 'open', 2)} = 0"
    closing = f"CASE WHEN {stays_open} THEN {sum(period(batch))} + {shape.random('id', 'closing', period(batch + 1)[1])} ELSE "
    return f"""(
      SELECT *, {account_of(shape, "c", "id")} AS account,
        CASE WHEN {shape.random("id", "canceled", 30)} = 0 THEN 'CNCL' ELSE 'CMPT' END AS ended,
        CAST({price(shape, "s")} + {shape.random("id", "bid", 2000)} / 100 AS DECIMAL(8, 2)) AS bid, tt IN ('TMB', 'TMS') AS market
      FROM (
        SELECT id, {opened} AS opened, {closing} {opened} + 60 + {shape.random("id", "wait", 7200)} END AS closed,
          {stays_open} AS stays_open, {shape.among("id", "type", "TMB", "TMS", "TSL", "TLS", "TLB")} AS tt,
          {shape.random("id", "customer", shape.customers)} AS c, {shape.random("id", "symbol", shape.symbols)} AS s,
          CAST(10 * (1 + {shape.random("id", "quantity", 80)}) AS INT) AS quantity, {shape.random("id", "cash", 10)} > 0 AS is_cash
        FROM range({first}, {end})
      ))"""


def _closed(shape: Shape, batch: int) -> str:
    """The trades that close in a batch: its own, and those that the batch before left open."""
    own = f"SELECT * FROM {_traded(shape, batch)} WHERE NOT stays_open"
    return own if batch == 1 else f"{own} UNION ALL SELECT * FROM {_traded(shape, batch - 1)} WHERE stays_open"


def _ended(shape: Shape, rows: str) -> str:
    """The columns of trades as they are when they have ended."""
    completed = "ended = 'CMPT'"
    return f"""
    SELECT id AS t_id, {text_of("opened")} AS t_dts, ended AS t_st_id, tt AS t_tt_id, is_cash AS t_is_cash, {symbol("s")} AS t_s_symb,
      quantity AS t_qty, bid AS t_bid_price, account AS t_ca_id, concat('Executor ', {shape.random("id", "executor", 500)}) AS t_exec_name,
      CASE WHEN {completed} THEN CAST(bid + {shape.random("id", "slip", 100)} / 100 AS DECIMAL(8, 2)) END AS t_trade_price,
      CAST({shape.random("id", "charge", 9000)} / 100 AS DECIMAL(10, 2)) AS t_chrg,
      CASE WHEN {completed} THEN CAST(bid * quantity * {shape.random("id", "commission", 20)} / 1000 AS DECIMAL(10, 2)) END AS t_comm,
      CASE WHEN {completed} THEN CAST(bid * quantity * {shape.random("id", "tax", 30)} / 1000 AS DECIMAL(10, 2)) END AS t_tax
    FROM ({rows})"""


def trades(shape: Shape, batch: int) -> str:
    """Trade: key (t_id); those that open in a batch, as they are at its end."""
    traded = _traded(shape, batch)
    open_ones = f"SELECT * FROM {traded} WHERE stays_open"
    return f"""{_ended(shape, f"SELECT * FROM {traded} WHERE NOT stays_open")}
    UNION ALL
    SELECT t_id, t_dts, CASE WHEN t_tt_id IN ('TMB', 'TMS') THEN 'SBMT' ELSE 'PNDG' END, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price,
      t_ca_id, t_exec_name, CAST(NULL AS DECIMAL(8, 2)), t_chrg, CAST(NULL AS DECIMAL(10, 2)), CAST(NULL AS DECIMAL(10, 2))
    FROM ({_ended(shape, open_ones)})"""


def ended_trades(shape: Shape, batch: int) -> str:
    """Those of the batch before that end in this one, with all columns of Trade."""
    return _ended(shape, f"SELECT * FROM {_traded(shape, batch - 1)} WHERE stays_open")


def trade_history(shape: Shape, batch: int) -> str:
    """TradeHistory: key (th_t_id, th_st_id); a row for each status that a trade takes. A limit order is pending, then submitted."""
    return f"""
    SELECT id AS th_t_id, {text_of("opened")} AS th_dts, CASE WHEN market THEN 'SBMT' ELSE 'PNDG' END AS th_st_id
    FROM {_traded(shape, batch)}
    UNION ALL
    SELECT id, {text_of("closed - 30")}, 'SBMT' FROM ({_closed(shape, batch)}) WHERE NOT market
    UNION ALL
    SELECT id, {text_of("closed")}, ended FROM ({_closed(shape, batch)})"""


def cash_transactions(shape: Shape, batch: int) -> str:
    """CashTransaction, without a key: what the trades that closed were paid. After the historical load some are reported a month late."""
    late = f"CASE WHEN {batch} > 1 AND id % 20 = 0 THEN {30 * DAY} ELSE 0 END"
    return f"""
    SELECT account AS ct_ca_id, {text_of(f"closed - {late}")} AS ct_dts,
      CAST(CAST(CASE WHEN tt IN ('TMS', 'TSL', 'TLS') THEN 1 ELSE -1 END * bid * quantity AS DECIMAL(12, 2)) AS STRING) AS ct_amt,
      concat(CASE WHEN tt IN ('TMS', 'TSL', 'TLS') THEN 'Sold ' ELSE 'Bought ' END, quantity, ' of ', s) AS ct_name
    FROM ({_closed(shape, batch)}) WHERE is_cash AND ended = 'CMPT'"""


def holding_history(shape: Shape, batch: int) -> str:
    """HoldingHistory: key (hh_h_t_id, hh_t_id). A purchase begins a holding; a sale reduces the holding of an earlier trade."""
    earlier = f"greatest(0, id - 1 - {shape.random('id', 'holding', 500)})"
    return f"""
    SELECT CASE WHEN buys THEN id ELSE {earlier} END AS hh_h_t_id, id AS hh_t_id,
      CASE WHEN buys THEN 0 ELSE quantity END AS hh_before_qty, CASE WHEN buys THEN quantity ELSE quantity div 2 END AS hh_after_qty
    FROM (SELECT *, tt IN ('TMB', 'TLB') AS buys FROM ({_closed(shape, batch)})) WHERE ended = 'CMPT'"""


def watch_history(shape: Shape, batch: int) -> str:
    """WatchHistory, without a key: a customer begins to watch a security (ACTV), and ends it (CNCL). Some records are there twice."""
    total, (start, seconds) = shape.trades, period(batch)
    first, end = born(total, batch)
    spread = f"{start} + (id - {first}) * {seconds} div {end - first}"
    if batch == 1:
        begun, again = f"range({end})", f"range(0, {end}, 20)"
        canceled = f"(SELECT id FROM range({end}) WHERE id % 5 < 2 AND id < {end - end // 10})"
        ended, once_more = f"{spread} + {30 * DAY}", spread
    else:
        begun, again, canceled = ids(total, batch), f"range({first}, {end}, 2)", chosen(total, batch, 5)
        ended, once_more = f"{start} + {shape.random('id', f'ended {batch}', seconds)}", spread
    return "\nUNION ALL\n".join(
        f"SELECT {shape.random('id', 'watcher', shape.customers)} AS w_c_id, "
        f"{symbol(shape.random('id', 'watched', shape.symbols))} AS w_s_symb, {text_of(when)} AS w_dts, '{action}' AS w_action FROM {those}"
        for those, when, action in ((begun, spread, "ACTV"), (again, once_more, "ACTV"), (canceled, ended, "CNCL"))
    )
