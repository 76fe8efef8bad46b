extension ZoneModel.Operation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .modify(let writes, let isAtomic):
            (isAtomic ? "all of " : "") + "[" + writes.map(\.description).joined(separator: "; ") + "]"
        case .lookup(let names): "look up \(names.joined(separator: ", "))"
        case .view: "view"
        case .query(let field, let value): "query \(field) == \(value)"
        case .createZone: "create the zone"
        case .deleteZone: "delete the zone"
        case .restore(let incarnation): "restore as \(incarnation)"
        }
    }
}

extension ZoneModel.Outcome: CustomStringConvertible {
    package var description: String {
        switch self {
        case .items(let items): "[\(items.map(\.description).joined(separator: "; "))]"
        case .batchFailed(let items): "batch failed [\(items.map(\.description).joined(separator: "; "))]"
        case .records(let records): "[\(records.map { $0?.description ?? "none" }.joined(separator: "; "))]"
        case .view(let records): shown(records)
        case .zone(let incarnation): "zone" + (incarnation.map { " \($0)" } ?? "")
        case .zoneDeleted: "zone deleted"
        case .zoneNotFound: "no such zone"
        case .restored: "restored"
        }
    }
}

extension ZoneModel.State: CustomStringConvertible {
    package var description: String {
        "\(isLive ? "zone" : "no zone, last") \(incarnation) at \(sequence): \(shown(records))"
    }
}

/// Entries by name, in the order of names.
func shown<Content>(_ entries: [String: Versioned<Content>]) -> String {
    "{" + entries.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "; ") + "}"
}
