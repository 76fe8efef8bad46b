package import RecordModel

/// How a page of a query was read.
package struct QueryExplanation: Hashable, Sendable {
    /// One of the indexes that the query names.
    package struct IndexUse: Hashable, Sendable {
        /// The field's name in the schema language; system fields have names such as `___createTime`.
        package var field: String
        /// `values`, `tokens` or `cells`.
        package var purpose: String
        /// Whether every record has its rows in the index; one that is not ready drives no query.
        package var isReady: Bool
        /// 0 to 1.
        package var progress: Double
    }

    /// What the records were found through, in words.
    package var driver: String
    /// `ascending` or `descending`: the way in which the driving index was read.
    package var direction: String
    /// Filters that were tested on records that were read, as field and comparator.
    package var testedOnRecords: [String]
    /// At most `QueryLimits.examinedMax`, give or take one group of equal keys or one ring.
    package var entriesExamined: Int
    /// Records whose bodies were read, including those that then failed a filter.
    package var recordsRead: Int
    /// Records in the page.
    package var recordsReturned: Int
    /// The indexes of the filters, then those of the order, each once.
    package var indexes: [IndexUse]

    /// Writes a JSON object with the members `driver`, `direction`, `testedOnRecords`, `entriesExamined`,
    /// `recordsRead`, `recordsReturned` and `indexes` (objects with `fieldName`, `purpose`, `ready`, `progress`).
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("driver")
        writer.string(driver)
        writer.key("direction")
        writer.string(direction)
        writer.key("testedOnRecords")
        writer.beginArray()
        for condition in testedOnRecords { writer.string(condition) }
        writer.endArray()
        for (key, count) in [
            ("entriesExamined", entriesExamined), ("recordsRead", recordsRead), ("recordsReturned", recordsReturned),
        ] {
            writer.key(key)
            writer.integer(Int64(count))
        }
        writer.key("indexes")
        writer.beginArray()
        for index in indexes {
            writer.beginObject()
            writer.key("fieldName")
            writer.string(index.field)
            writer.key("purpose")
            writer.string(index.purpose)
            writer.key("ready")
            writer.bool(index.isReady)
            writer.key("progress")
            writer.number(index.progress)
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }
}

/// What a run remembers for its explanation.
struct QueryNote {
    enum Way {
        case order
        case source(String, String)
        case nothing
    }

    var way = Way.order
    /// The matches were few and sorted in memory.
    var gathered = false
    /// Rows of several filters were intersected before the order was read.
    var intersected = false
    /// A large group of one sort key was read through the next.
    var descended = false
    var rings = 0

    /// What the records were found through, in words.
    /// - Parameter lookUps: how many rows of other indexes were asked for each entry.
    func driver(of plan: QueryPlan, lookUps: Int) -> String {
        switch way {
        case .nothing: return "nothing: a filter names no value"
        case .source(let title, let index):
            return "index on \(index), for \(title)"
                + (gathered ? "; matches sorted in memory" : "; in the order of record ids")
        case .order:
            guard let first = plan.order.keys.first else { return "record ids" }
            var text: String
            switch first.kind {
            case .values(let index): text = "index on \(index.name), in the order of its values"
            case .distance(let index, _): text = "index on \(index.name), in \(rings) rings by distance"
            case .leastKey(let source):
                text = "index on \(source.indexes.map(\.name).joined(separator: ", ")), for \(source.title)"
            }
            if intersected { text += "; records known from an intersection of filters" }
            if descended { text += "; large groups through the next sort key" }
            if lookUps > 0 {
                text += "; \(lookUps) look-up\(lookUps == 1 ? "" : "s") an entry in other indexes"
            }
            return text
        }
    }
}
