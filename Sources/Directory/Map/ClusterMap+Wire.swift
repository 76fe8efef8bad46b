package import Wire

extension ClusterMap.Node: WireMessage {
    package static var blank: Self { ClusterMap.Node(id: 0, peerHost: "", peerPort: 0, clientURL: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &id)
        try wire.field(2, &peerHost)
        try wire.field(3, &peerPort)
        try wire.field(4, &clientURL)
        try wire.field(5, &incarnation, unless: 0)
        try wire.field(6, &lastGeneration, unless: 0)
        try wire.field(7, &isLeaving, unless: false)
    }
}

extension ClusterMap: WireCodable {
    /// 1 cluster, 2 epoch, 3 node, 4 shard's replicas, 5 slot's shard, 6 directory's replicas, 7 replicas a shard, 8
    /// removed node. Replicas: 1 node, then 2 generation where it is not 0.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, clusterID)
        writer.field(2, epoch)
        for node in nodes { writer.field(3) { node.encode(to: &$0) } }
        for replicas in shards { writer.field(4) { Self.encode(replicas, to: &$0) } }
        writer.fields(5, slots.map(UInt64.init))
        writer.field(6) { Self.encode(directory, to: &$0) }
        writer.field(7, UInt64(replicasPerShard))
        for node in removed { writer.field(8, node) }
    }

    /// A map of the time before generations has no fields above 5.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(clusterID: "", epoch: 0, nodes: [], shards: [], slots: [])
        var directory: [Replica]?
        var replicasPerShard: UInt64?
        while let field = try reader.nextField() {
            switch field {
            case 1: clusterID = try reader.string()
            case 2: epoch = try reader.unsigned()
            case 3: nodes.append(try reader.message())
            case 4: shards.append(try Self.replicas(&reader))
            case 5: slots.append(Int(truncatingIfNeeded: try reader.unsigned()))
            case 6: directory = try Self.replicas(&reader)
            case 7: replicasPerShard = try reader.unsigned()
            case 8: removed.append(try reader.unsigned())
            default: try reader.skip()
            }
        }
        self.directory = directory ?? nodes.map { Replica(node: $0.id) }
        self.replicasPerShard = Int(truncatingIfNeeded: replicasPerShard ?? UInt64(shards.first?.count ?? 0))
        guard slots.count == Self.slotCount, slots.allSatisfy({ shards.indices.contains($0) }) else {
            throw .invalidValue(field: 5)
        }
    }

    private static func encode(_ replicas: [Replica], to writer: inout WireWriter) {
        for replica in replicas {
            writer.field(1, replica.node)
            if replica.generation != 0 { writer.field(2, replica.generation) }
        }
    }

    private static func replicas(_ reader: inout WireReader) throws(WireError) -> [Replica] {
        var nested = try reader.nested()
        var replicas: [Replica] = []
        while let field = try nested.nextField() {
            switch field {
            case 1: replicas.append(Replica(node: try nested.unsigned()))
            case 2:
                let generation = try nested.unsigned()
                guard !replicas.isEmpty, generation <= generationMax else { throw .invalidValue(field: 2) }
                replicas[replicas.count - 1].generation = generation
            default: try nested.skip()
            }
        }
        return replicas
    }
}
