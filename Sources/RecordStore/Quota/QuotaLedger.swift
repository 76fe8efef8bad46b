package import GRDB
package import RecordModel

/// What quotas are spent from, in a transaction: a database's ledger on one shard, and what it allots to the shards of
/// the zones.
struct QuotaLedger: TransactionPart {
    let transaction: RecordTransaction

    /// Applies a command about a database's quota.
    func apply(_ command: QuotaCommand) throws -> RecordOutcome {
        switch command {
        case .grant(let grant):
            transaction.observe(grant.time)
            return try apply(grant)
        case .credit(let credit): return try apply(credit)
        case .release(let release): return .quota(try apply(release))
        case .deposit(let deposit): return try apply(deposit)
        case .addTransfer(let transfer): return .quota(try apply(transfer))
        }
    }

    // MARK: At the zone's shard

    private func apply(_ credit: QuotaCredit) throws -> RecordOutcome {
        guard credit.cumulative == credit.cumulative.clamped else { return Self.nonsense }
        _ = try transaction.makeDatabase(credit.database)
        let database = try transaction.openDatabase(credit.database)
        guard var row = database.row else { return .quota(.credited) }
        if credit.epoch > row.epoch {
            row.returned = row.returned + row.unused
            (row.epoch, row.overdrawn) = (credit.epoch, credit.overdrawn)
        } else if credit.epoch == row.epoch {
            // Under one version the ledger comes to have enough and keeps it: a credit that was overtaken says nothing.
            row.overdrawn.formIntersection(credit.overdrawn)
        }
        let new = (credit.cumulative - row.received).greater(.zero)
        row.received = row.received + new
        if credit.epoch < row.epoch { row.returned = row.returned + new }
        if row != database.row {
            database.row = row
            database.isChanged = true
        }
        return .quota(.credited)
    }

    private func apply(_ release: QuotaRelease) throws -> QuotaOutcome {
        let database = try transaction.openDatabase(release.database)
        guard var row = database.row else { return .released(received: .zero, returned: .zero) }
        if row.unused != .zero {
            row.returned = row.returned + row.unused
            database.row = row
            database.isChanged = true
        }
        return .released(received: row.received, returned: row.returned)
    }

    // MARK: At the ledger's shard

    private func apply(_ grant: QuotaGrant) throws -> RecordOutcome {
        guard Self.areSound(grant.received, grant.returned) else { return Self.nonsense }
        let id = try transaction.makeDatabase(grant.ledger).id
        var ledger = try LedgerState(id, in: db)
        if grant.epoch >= ledger.epoch { (ledger.epoch, ledger.cap) = (grant.epoch, grant.cap) }
        var share = ledger.share(grant.shard).raised(to: grant.received, grant.returned)
        ledger.put(share)
        let inFlight = share.granted - grant.received
        let need = (grant.need.clamped - inFlight).greater(.zero)
        let want = (grant.want.clamped - inFlight).greater(need)
        let room = ledger.free.lesser(.greatest - share.granted).greater(.zero)
        guard need.fits(in: room) else {
            try write(ledger, share, id)
            return .quota(.insufficient(cumulative: share.granted, free: ledger.free))
        }
        share.granted = share.granted + want.lesser(room)
        ledger.put(share)
        try write(ledger, share, id)
        return .quota(.granted(cumulative: share.granted, free: ledger.free))
    }

    private func apply(_ deposit: QuotaDeposit) throws -> RecordOutcome {
        guard Self.areSound(deposit.received, deposit.returned) else { return Self.nonsense }
        let id = try transaction.makeDatabase(deposit.ledger).id
        let ledger = try LedgerState(id, in: db)
        let share = ledger.share(deposit.shard).raised(to: deposit.received, deposit.returned)
        try write(ledger, share, id)
        return .quota(.deposited)
    }

    private func apply(_ transfer: QuotaTransfer) throws -> QuotaOutcome {
        let id = try transaction.makeDatabase(transfer.ledger).id
        var ledger = try LedgerState(id, in: db)
        let own = QuotaTransfer.month(of: transaction.time)
        // A node whose clock was far ahead began a month that is not to come.
        if transaction.time > 0, ledger.transferMonth > Self.next(own) {
            (ledger.transferMonth, ledger.transferBytes) = (own, 0)
        }
        if transfer.month > ledger.transferMonth, transaction.time <= 0 || transfer.month <= Self.next(own) {
            (ledger.transferMonth, ledger.transferBytes) = (transfer.month, 0)
        }
        if transfer.month == ledger.transferMonth {
            let (sum, overflow) = ledger.transferBytes.addingReportingOverflow(transfer.bytes)
            ledger.transferBytes = overflow ? .max : sum
        }
        try write(ledger, nil, id)
        return .transfer(month: ledger.transferMonth, bytes: ledger.transferBytes)
    }

    /// Whether a shard may have been given so much over all times, and have given back so much of it.
    private static func areSound(_ received: QuotaAmounts, _ returned: QuotaAmounts) -> Bool {
        received == received.clamped && returned == returned.clamped && returned.fits(in: received)
    }

    private static func next(_ month: UInt64) -> UInt64 { month % 100 == 12 ? month + 89 : month + 1 }

    private func write(_ ledger: LedgerState, _ share: LedgerState.Share?, _ id: Int64) throws {
        try db.run(
            "INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?, ?, ?)", id, ledger.epoch, ledger.cap.bytes,
            ledger.cap.records, ledger.transferMonth, ledger.transferBytes)
        if ledger.cap.assets == 0 {
            try db.run("DELETE FROM asset_ledger WHERE database = ?", id)
        } else {
            try db.run("INSERT OR REPLACE INTO asset_ledger VALUES (?, ?)", id, ledger.cap.assets)
        }
        guard let share else { return }
        try share.check()
        try db.run(
            "INSERT OR REPLACE INTO ledger_share VALUES (?, ?, ?, ?, ?, ?)", id, share.shard, share.granted.bytes,
            share.granted.records, share.returned.bytes, share.returned.records)
        let shard = share.shard
        // What was given over all times never comes back to nothing.
        if share.granted.assets != 0 {
            try db.run(
                "INSERT OR REPLACE INTO asset_share VALUES (?, ?, ?, ?)", id, shard, share.granted.assets,
                share.returned.assets)
        }
    }

    private static let nonsense = RecordOutcome.refused(
        ServiceError(
            .badRequest,
            """
            amounts that were given and given back over all times are 0 to \(QuotaAmounts.greatest.bytes), and no more \
            is given back than given
            """
        ))
}

extension LedgerState {
    /// What the ledger of a database knows, at the shard where the ledger is; an empty one elsewhere.
    /// - Throws: `DatabaseError` on an I/O error.
    package init(of key: DatabaseKey, in db: Database) throws {
        let rows = Rows(db: db)
        let id = try rows.schema(key).flatMap { try rows.databaseID(key, schemaID: $0.id) }
        self = try id.map { try LedgerState($0, in: db) } ?? LedgerState()
    }

    /// Reads a database's ledger; empty without rows.
    init(_ databaseID: Int64, in db: Database) throws {
        let head = try db.first(
            """
            SELECT epoch, cap_bytes, cap_records, month, transfer,
                coalesce((SELECT a.cap FROM asset_ledger a WHERE a.database = l.database), 0)
            FROM ledger l WHERE database = ?
            """, databaseID
        ) {
            LedgerState(
                cap: QuotaAmounts(bytes: $0.integer(1), records: $0.integer(2), assets: $0.integer(5)),
                epoch: UInt64(bitPattern: $0.integer(0)), transferMonth: UInt64(bitPattern: $0.integer(3)),
                transferBytes: UInt64(bitPattern: $0.integer(4)))
        }
        self = head ?? LedgerState()
        shares = try db.all(
            """
            SELECT l.shard, l.granted_bytes, l.granted_records, l.returned_bytes, l.returned_records,
                coalesce(a.granted, 0), coalesce(a.returned, 0)
            FROM ledger_share l LEFT JOIN asset_share a ON a.database = l.database AND a.shard = l.shard
            WHERE l.database = ? ORDER BY l.shard
            """, databaseID
        ) {
            Share(
                shard: UInt64(bitPattern: $0.integer(0)),
                granted: QuotaAmounts(bytes: $0.integer(1), records: $0.integer(2), assets: $0.integer(5)),
                returned: QuotaAmounts(bytes: $0.integer(3), records: $0.integer(4), assets: $0.integer(6)))
        }
    }

    func share(_ shard: UInt64) -> Share {
        shares.first { $0.shard == shard } ?? Share(shard: shard, granted: .zero, returned: .zero)
    }

    mutating func put(_ share: Share) {
        if let place = shares.firstIndex(where: { $0.shard == share.shard }) {
            shares[place] = share
        } else {
            shares.append(share)
        }
    }
}

extension LedgerState.Share {
    /// At least what its shard says that it was given and has given back.
    fileprivate func raised(to received: QuotaAmounts, _ returned: QuotaAmounts) -> Self {
        var share = self
        share.granted = granted.greater(received)
        share.returned = self.returned.greater(returned)
        return share
    }
}
