import Authorization
import RecordModel
import RecordStore

extension RecordTwin {
    mutating func install(_ command: InstallSchema) -> RecordOutcome {
        guard command.version > 0 else { return Self.refused(.badRequest) }
        guard command.version >= version else { return .needsSchema(installed: version) }
        let isReset = command.generation > generation
        between = schema
        if command.version == version && !isReset { return .schemaInstalled }
        if !isReset {
            between = schemaKept(until: command.schema)
            if between != schema { replaceSchema(by: between, isReset: false) }
        }
        if !isReset && stray.contains(where: { isBroughtBack($0.type, $0.field, by: command.schema) }) {
            var touched: [Int] = []
            for case .scrub(let id) in jobs { scrub(id, &touched) }
            jobs.removeAll { if case .scrub = $0 { true } else { false } }
        }
        if isReset {
            for place in zones.indices {
                zones[place].isLive = false
                zones[place].changedAt = 0
            }
            remembered.removeAll()
            incarnations = incarnations.mapValues { $0 + 1 }
        }
        replaceSchema(by: command.schema, isReset: isReset)
        version = command.version
        generation = max(generation, command.generation)
        return .schemaInstalled
    }

    /// What of the schema is as old in a later one.
    private func schemaKept(until later: Schema) -> Schema {
        var kept = schema
        kept.types.removeAll { later.type(named: $0.name).map { $0.addedIn > version } ?? false }
        for place in kept.types.indices {
            let next = later.type(named: kept.types[place].name)
            kept.types[place].fields.removeAll { field in
                !field.isSystem && (next?.field(named: field.name)).map { $0.addedIn > version } ?? false
            }
        }
        return kept
    }

    private mutating func replaceSchema(by wanted: Schema, isReset: Bool) {
        var gone: [(String, String)] = []
        for type in schema.types {
            guard let next = wanted.type(named: type.name) else {
                gone.append((type.name, ""))
                continue
            }
            for field in type.fields where !field.isSystem && next.field(named: field.name)?.type != field.type {
                gone.append((type.name, field.name))
            }
        }
        if !gone.isEmpty && !(rows.isEmpty && versions.isEmpty) && !isReset {
            lastJob += 1
            for (type, field) in gone {
                stray.removeAll { $0.type == type && $0.field == field }
                stray.append((type, field, lastJob))
            }
            jobs.append(.scrub(id: lastJob))
        }
        dropIndexes(for: wanted)
        schema = wanted
    }

    private func isBroughtBack(_ type: String, _ field: String, by next: Schema) -> Bool {
        guard let nextType = next.type(named: type) else { return false }
        if field.isEmpty { return schema.type(named: type) == nil }
        guard let nextField = nextType.field(named: field) else { return false }
        return schema.type(named: type)?.field(named: field)?.type != nextField.type
    }

    /// All that there is to do, at once.
    mutating func maintain(_ command: Maintain) -> RecordOutcome {
        observe(command.time)
        var touched: [Int] = []
        while !jobs.isEmpty {
            switch jobs.removeFirst() {
            case .cascade(let zone, let target, let before, let caller, let versionsMax):
                goOn(zone: zone, target: target, before: before, caller: caller, versionsMax)
            case .scrub(let id): scrub(id, &touched)
            }
        }
        rows.removeAll { row in zones.contains { $0.id == row.zone && !$0.isLive } }
        versions.removeAll { version in zones.contains { $0.id == version.zone && !$0.isLive } }
        dropped.removeAll()
        purge(command.retention)
        purgeVersions(command.versions)
        remembered.removeAll { $0.expires <= time }
        return .maintained(hasMore: false)
    }

    private mutating func goOn(
        zone id: Int, target: String, before: UInt64, caller: Caller, _ versionsMax: UInt64
    ) {
        guard let zone = zones.firstIndex(where: { $0.id == id && $0.isLive }) else { return }
        let edge = Edge(target: target, action: .deleteSelf)
        let found = sources(target, .deleteSelf, zone: zone).filter { rows[$0].edges[edge] ?? 0 < before }
        let members = cascade(from: target, start: [], before: before, caller: caller, zone: zone)
        for place in found where mayCascade(rows[place], caller, zone) {
            guard Set(holders(place, zone: zone)).isSubset(of: members) else { continue }
            let name = rows[place].name
            let refersOn = !sources(name, .deleteSelf, zone: zone).isEmpty
            bury(place, by: caller.user ?? "_anonymous", zone: zone, versionsMax)
            guard refersOn else { continue }
            jobs.append(
                .cascade(
                    zone: id, target: name, before: zones[zone].sequence, caller: caller, versionsMax: versionsMax))
        }
    }

    private mutating func scrub(_ id: Int, _ touched: inout [Int]) {
        let types = Set(stray.filter { $0.job == id }.map(\.type))
        let order = rows.indices.sorted { rows[$0].id < rows[$1].id }
        for place in order where !rows[place].isDeleted && types.contains(rows[place].type) {
            // What is in a retired zone stays until it is reclaimed.
            guard let zone = zones.firstIndex(where: { $0.id == rows[place].zone && $0.isLive }) else { continue }
            if type(of: rows[place]) != nil {
                rows[place].fields = visible(rows[place])
                let edges = Self.edges(rows[place].fields)
                rows[place].edges = rows[place].edges.filter { edges.contains($0.key) }
            } else {
                if !touched.contains(zone) {
                    touched.append(zone)
                    touch(zone)
                }
                bury(place, by: "_anonymous", zone: zone, 0)
            }
        }
        scrubVersions(types)
        stray.removeAll { $0.job == id }
    }

    private mutating func purge(_ retention: Retention) {
        for zone in zones.indices where zones[zone].isLive {
            let tombstones = rows.filter { $0.zone == zones[zone].id && $0.isDeleted }
                .sorted { $0.sequence < $1.sequence }
            let old = tombstones.filter { $0.modified.timestamp < time - retention.tombstoneAgeMax }.count
            let many = tombstones.count - Int(clamping: retention.tombstonesMax)
            let gone = tombstones.prefix(max(old, many, 0))
            guard let last = gone.last else { continue }
            zones[zone].floor = last.sequence
            rows.removeAll { row in gone.contains { $0.id == row.id } }
        }
    }
}
