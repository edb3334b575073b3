"""The take-over of a connector's place: a new job continues where Debezium has stopped."""
